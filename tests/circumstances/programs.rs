//! Where the program itself lies, and how it is called.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dsh_facts::Facts;
use nix::unistd::geteuid;

use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::{CONFINED, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in CONFINED {
        let mut add = |name: &str, test: fn(&Caller, &str) -> Verdict| {
            let name = format!("programs::{name}::{mode}");
            cases.extend(for_each_user(&name, move |caller| test(caller, mode)));
        };
        add("executable-by-all-and-readable-by-none", unreadable);
        add("without-a-name", without_a_name);
        for &(name, call) in KINDS {
            let name = format!("programs::{name}::{mode}");
            cases.extend(for_each_user(&name, move |caller| works(caller, call, mode)));
        }
    }
    cases
}

/// Prepares a copy of the program and says how to call it, from the workspace.
type Call = fn(&Caller) -> io::Result<Command>;

const KINDS: &[(&str, Call)] = &[
    ("in-a-private-directory", |caller| {
        caller.make_dir("private")?;
        let copy = copy(caller, &caller.path("private"))?;
        fs::set_permissions(caller.path("private"), Permissions::from_mode(0o700))?;
        Ok(caller.command(copy))
    }),
    ("executable-and-no-more", |caller| {
        let copy = copy(caller, &caller.path("home"))?;
        fs::set_permissions(&copy, Permissions::from_mode(0o100))?;
        Ok(caller.command(copy))
    }),
    ("by-a-relative-name", |caller| {
        copy(caller, &caller.path("home"))?;
        Ok(caller.command("../home/dsh-run"))
    }),
    ("by-a-link", |caller| {
        copy(caller, &caller.path("home"))?;
        symlink("home/dsh-run", caller.path("another-name"))?;
        Ok(caller.command("../another-name"))
    }),
    ("by-the-path", |caller| {
        copy(caller, &caller.path("home"))?;
        let mut command = caller.command("sh");
        command.args(["-c", "PATH=$HOME:$PATH; exec dsh-run \"$@\"", "sh"]);
        Ok(command)
    }),
    ("by-a-descriptor", |caller| {
        let copy = copy(caller, &caller.path("home"))?;
        let mut command = caller.command("bash");
        command.args(["-c", "exec 77<\"$0\"; exec /proc/self/fd/77 \"$@\""]).arg(copy);
        Ok(command)
    }),
    ("deleted", |caller| {
        let copy = copy(caller, &caller.path("home"))?;
        let mut command = caller.command("bash");
        let script = "cp $0 $0.2; exec 77<$0.2; rm $0.2; exec /proc/self/fd/77 \"$@\"";
        command.args(["-c", script]).arg(copy);
        Ok(command)
    }),
    ("replaced", |caller| {
        let copy = copy(caller, &caller.path("home"))?;
        let mut command = caller.command("bash");
        let script = "cp $0 $0.2; exec 77<$0.2; cp /bin/false $0.3; mv $0.3 $0.2; \
                      exec /proc/self/fd/77 \"$@\"";
        command.args(["-c", script]).arg(copy);
        Ok(command)
    }),
    ("below-tmp", |caller| in_scratch(caller, "/tmp")),
    ("below-dev-shm", |caller| in_scratch(caller, "/dev/shm")),
    ("with-an-empty-name", |caller| {
        let mut command = caller.command(copy(caller, &caller.path("home"))?);
        command.arg0("");
        Ok(command)
    }),
    ("with-the-wardens-name", |caller| {
        let mut command = caller.command(copy(caller, &caller.path("home"))?);
        command.arg0("dsh-warden");
        Ok(command)
    }),
];

/// Where the sandbox has a directory of its own, in which the program is not. It goes with the shell.
fn in_scratch(caller: &Caller, place: &str) -> io::Result<Command> {
    let mut command = caller.command("bash");
    let script = "d=$(mktemp -dp $1); cp $0 $d; $d/dsh-run \"${@:2}\"; s=$?; rm -r $d; exit $s";
    command.args(["-c", script]).arg(caller.program()).arg(place);
    Ok(command)
}

/// Another process writes it: a thread of this one that forks meanwhile would hold it open for
/// writing, and to execute it would be ETXTBSY.
fn copy(caller: &Caller, directory: &Path) -> io::Result<PathBuf> {
    let copy = directory.join("dsh-run");
    let copied = finish(caller.command("cp").arg(caller.program()).arg(&copy))?;
    if !copied.status.success() {
        return Err(io::Error::other(copied.stderr));
    }
    Ok(copy)
}

/// It confines as completely as ever.
fn works(caller: &Caller, call: Call, mode: &str) -> Verdict {
    let mut command = call(caller)?;
    let mut problems = Problems::default();
    let gaps = gaps(caller, &mut command, mode, &mut problems)?;
    problems.equal("gaps", gaps, usual_gaps(caller, mode)?);
    problems.verdict(&command)
}

/// Runs a command that the sandbox refuses something, and returns the gaps that the facts list.
fn gaps(
    caller: &Caller,
    command: &mut Command,
    mode: &str,
    problems: &mut Problems,
) -> io::Result<Vec<String>> {
    let file = caller.path("facts.json");
    command.args(["--mode", mode, "--facts"]).arg(&file);
    let ended = finish(command.args(["--", "sh", "-c", "echo ran; touch ../new; exit 7"]))?;
    problems.equal("status", (ended.status.code(), ended.stdout.as_str()), (Some(7), "ran\n"));
    problems.contains("stderr", &ended.stderr, "Read-only file system");
    let facts: Facts = serde_json::from_slice(&fs::read(file)?)?;
    let gaps = facts.enforcement.map(|enforcement| enforcement.gaps).unwrap_or_default();
    Ok(gaps.into_iter().map(|gap| gap.effect).collect())
}

fn usual_gaps(caller: &Caller, mode: &str) -> io::Result<Vec<String>> {
    gaps(caller, &mut caller.command(caller.program()), mode, &mut Problems::default())
}

/// As an administrator may install it: nobody but its owner can look into it. The kernel then
/// leaves the process's /proc files to root.
fn unreadable(caller: &Caller, mode: &str) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can keep others from reading what they may execute");
    }
    let copy = caller.path("installed");
    let mut problems = Problems::default();
    let mut install = Command::new("install");
    let installed = finish(install.args(["-m", "711"]).arg(caller.program()).arg(&copy))?;
    problems.equal("install", installed.status.code(), Some(0));
    let gaps = gaps(caller, &mut caller.command(&copy), mode, &mut problems)?;
    problems.equal("gaps", gaps, usual_gaps(caller, mode)?);
    problems.verdict(&copy)
}

/// A program that exists in memory alone.
fn without_a_name(caller: &Caller, mode: &str) -> Verdict {
    const EXECUTE: &str = "import os, shutil, sys\n\
        memory = os.memfd_create('program', 0)\n\
        shutil.copyfileobj(open(sys.argv[1], 'rb'), os.fdopen(memory, 'wb', closefd=False))\n\
        image = f'/proc/self/fd/{os.open(f\"/proc/self/fd/{memory}\", os.O_RDONLY)}'\n\
        os.close(memory)\n\
        os.execv(image, [image, *sys.argv[2:]])\n";
    let mut problems = Problems::default();
    let mut command = caller.command("python3");
    command.args(["-c", EXECUTE]).arg(caller.program());
    let gaps = gaps(caller, &mut command, mode, &mut problems)?;
    problems.equal("gaps", gaps, usual_gaps(caller, mode)?);
    problems.verdict(&"a program in memory")
}
