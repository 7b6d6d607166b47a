//! Callers as processes: their signals, sessions, groups and descriptors.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::geteuid;

use crate::root_shell::shell_of_root;
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::{CONFINED, MODES, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    [
        for_each_user("processes::every-signal-ignored-and-blocked", deaf),
        for_each_user("processes::a-session-leader-without-a-terminal", session_leader),
        for_each_user("processes::pid-1", pid_1),
        for_each_user("processes::a-thousand-descriptors", many_descriptors),
    ]
    .into_iter()
    .flatten()
    .chain([
        Case::new("processes::a-user-without-an-entry", |all| nameless(all.dsh_run())),
        Case::new("processes::supplementary-groups::root", |all| groups(all.dsh_run(), 0)),
        Case::new("processes::supplementary-groups::4242", |all| groups(all.dsh_run(), 4242)),
    ])
    .collect()
}

/// Neither ignored nor blocked signals are the command's, nor do they keep dsh-run from seeing ends
/// of children or of its time limit.
fn deaf(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for mode in MODES {
        for (options, inside, status, stdout) in [
            (&[][..], "grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2; exit 7", 7, ZEROES),
            (
                &[],
                "yes | head -1; echo ${PIPESTATUS[0]}; (exit 3) & wait $!; echo $?; exit 7",
                7,
                "y\n141\n3\n",
            ),
            (&["--timeout", "200ms"], "sleep 300", 124, ""),
        ] {
            let mut command = caller.command("env");
            command.args(["--ignore-signal", "--block-signal"]).arg(caller.program());
            command.args(["--mode", mode]).args(options).args(["-c", inside]);
            let ended = finish(&mut command)?;
            let got = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
            problems.equal(&format!("{mode} {inside}"), got, (Some(status), stdout, ""));
        }
    }
    problems.verdict(&"a caller that hears no signal")
}

const ZEROES: &str = "0000000000000000\n0000000000000000\n";

fn session_leader(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for mode in MODES {
        let mut command = caller.command("setsid");
        command.args(["--wait", "sh", "-c", "exec \"$0\" \"$@\""]).arg(caller.program());
        command.args(["--mode", mode, "-c", "sleep 300 & sleep 0.01; kill %1; exit 7"]);
        let ended = finish(command.process_group(0))?;
        problems.equal(mode, (ended.status.code(), ended.stderr.as_str()), (Some(7), ""));
    }
    problems.verdict(&"a session leader")
}

/// As the entry point of a container: nobody reaps for it, and it has no default dispositions.
fn pid_1(caller: &Caller) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can make a pid namespace for others");
    }
    let mut problems = Problems::default();
    for mode in MODES {
        let mut command = shell_of_root(caller, "exec unshare --pid --fork --mount-proc \"$@\"");
        command.args(["--mode", mode, "-c", "(setsid sleep 300 &); (exit 3) & wait $!; exit 7"]);
        let ended = finish(&mut command)?;
        problems.equal(mode, (ended.status.code(), ended.stderr.as_str()), (Some(7), ""));
    }
    problems.verdict(&"pid 1")
}

/// As many as a limit of 1,024 leaves room for, and then no room at all.
fn many_descriptors(caller: &Caller) -> Verdict {
    const OPEN: &str = "ulimit -n 1024; n=3; while [ $n -lt $0 ]; do eval \"exec $n</dev/null\"; \
                        n=$((n+1)); done; exec \"$@\"";
    let inside = "n=0; for f in /proc/$$/fd/*; do n=$((n+1)); done; echo $n; ulimit -n; exit 7";
    let mut problems = Problems::default();
    for mode in MODES {
        let run = |open: &str| {
            let mut command = caller.command("bash");
            command.args(["-c", OPEN, open]).arg(caller.program());
            finish(command.args(["--mode", mode, "--", "sh", "-c", inside]))
        };
        let ended = run("1003")?;
        problems.equal(mode, (ended.status.code(), ended.stderr.as_str()), (Some(7), ""));
        let open = ended.stdout.lines().next().unwrap_or_default().to_owned();
        // 0, 1 and 2, and the shell's own for the directory.
        problems.equal(mode, open.as_str(), "4");
        let ended = run("1022")?;
        problems.equal(mode, (ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
        problems.equal(mode, ended.stderr.lines().count(), 1);
        problems.contains(mode, &ended.stderr, "Too many open files (EMFILE)");
    }
    problems.verdict(&"a thousand descriptors")
}

fn nameless(dsh_run: std::path::PathBuf) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can become a user without an entry");
    }
    let caller = Caller::new(Persona::of(4242), dsh_run)?;
    let mut problems = Problems::default();
    for mode in MODES {
        let inside =
            "id -u; id -g; id -un 2>/dev/null >&2 || echo nobody knows; echo x >new; exit 7";
        let mut command = caller.dsh_run(["--mode", mode, "--", "bash", "-c", inside]);
        let ended = finish(&mut command)?;
        problems.equal(mode, ended.status.code(), Some(7));
        problems.equal(mode, ended.stdout.as_str(), "4242\n4242\nnobody knows\n");
    }
    problems.verdict(&"uid 4242")
}

/// A group opens what is the group's, also for writing, though no map of the sandbox's names it.
fn groups(dsh_run: std::path::PathBuf, uid: u32) -> Verdict {
    const GROUPS: &str = "54321,54322";
    if !geteuid().is_root() {
        return skip("only root can give groups away");
    }
    let caller = Caller::new(Persona::of(uid), dsh_run)?;
    let mut problems = Problems::default();
    for name in ["workspace/shared", "outside"] {
        let directory = caller.make_dir(name)?;
        nix::unistd::chown(&directory, Some(1.into()), Some(54322.into()))?;
        std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o2770))?;
    }
    for mode in CONFINED {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
        command.args(["--groups", GROUPS]).arg(caller.program()).args(["--mode", mode, "-c"]);
        command.arg(
            "ls shared ../outside >/dev/null && echo seen; echo x >shared/new && echo written; \
                     echo x >../outside/new; exit 7",
        );
        let ended = finish(command.current_dir(caller.workspace()))?;
        let expected = if mode == "read-only" { "seen\n" } else { "seen\nwritten\n" };
        let got = (ended.status.code(), ended.stdout.as_str());
        problems.equal(mode, got, (Some(7), expected));
        problems.contains(mode, &ended.stderr, "outside/new: Read-only file system");
    }
    let new = std::os::unix::fs::MetadataExt::gid(&caller.path("workspace/shared/new").metadata()?);
    problems.equal("group of the new file", new, 54322);
    problems.verdict(&GROUPS)
}
