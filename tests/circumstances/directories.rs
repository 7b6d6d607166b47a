//! Current directories that are gone, out of reach or too deep.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use libtest_mimic::Completion;
use nix::unistd::geteuid;

use crate::root_shell::shell_of_root;
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::running::Finished;
use crate::support::skip::skip;
use crate::{CONFINED, MODES, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    [
        for_each_user("directories::deleted", deleted),
        for_each_user("directories::unmounted", unmounted),
        for_each_user("directories::behind-a-closed-door", behind_a_closed_door),
        for_each_user("directories::deeper-than-a-path", deeper_than_a_path),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs dsh-run in a directory that has been deleted. `$W` is the workspace.
fn in_deleted(caller: &Caller, mode: &str, options: &str) -> std::io::Result<Finished> {
    let place = caller.make_dir("gone")?;
    let script = format!(
        "rmdir ../gone && exec \"$0\" --mode {mode} {options} -- \
         sh -c 'pwd -P; [ \"$0\" = read-only ] || : >new' {mode}"
    );
    let mut command = caller.command("sh");
    command.args(["-c", &script]).arg(caller.program()).env("W", caller.workspace());
    finish(command.current_dir(place))
}

/// A workspace that is named serves as the directory to start in; `--workdir` wins; and without
/// either it is never guessed.
fn deleted(caller: &Caller) -> Verdict {
    caller.make_dir("workspace/below")?;
    let (workspace, below) = (caller.workspace(), caller.path("workspace/below"));
    let mut problems = Problems::default();
    for mode in MODES {
        for (options, directory) in [
            ("--workspace \"$W\"", &workspace),
            ("--workspace \"$W\" --workdir \"$W/below\"", &below),
        ] {
            let ended = in_deleted(caller, mode, options)?;
            let what = format!("{mode} {options}");
            problems.equal(&what, (ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
            let directory = directory.canonicalize()?;
            problems.equal(&what, ended.stdout, format!("{}\n", directory.display()));
            let new = directory.join("new");
            problems.equal(&what, new.exists(), mode != "read-only");
            if new.exists() {
                fs::remove_file(new)?;
            }
        }
        for (options, says) in [
            (
                "",
                "the current directory: No such file or directory (ENOENT): name one with --workdir",
            ),
            ("--workdir \"$W\"", "the current directory: No such file or directory (ENOENT)"),
            ("--workspace \"$W\" --workdir below", "the current directory: No such file"),
            ("--workspace .", "workspace .: No such file or directory (ENOENT)"),
            ("--workspace below", "workspace below: No such file or directory (ENOENT)"),
        ] {
            let ended = in_deleted(caller, mode, options)?;
            let what = format!("{mode} {options}");
            problems.equal(&what, (ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
            problems.equal(&what, ended.stderr.lines().count(), 1);
            problems.contains(&what, &ended.stderr, &format!("dsh-run: {says}"));
        }
    }
    problems.equal("left in the workspace", fs::read_dir(&workspace)?.count(), 1);
    problems.verdict(&"a deleted directory")
}

/// The same where what is gone is the mount: the directory is still there, and no name leads to it.
fn unmounted(caller: &Caller) -> Verdict {
    const LEAVE: &str =
        "mount -t tmpfs -o mode=777 m ../home; cd ../home; umount -l ../home; exec \"$@\"";
    if !geteuid().is_root() {
        return skip("only root can mount for others");
    }
    let mut problems = Problems::default();
    for mode in MODES {
        let refused = finish(shell_of_root(caller, LEAVE).args(["--mode", mode, "--", "true"]))?;
        problems.equal(mode, refused.status.code(), Some(125));
        problems.contains(mode, &refused.stderr, "dsh-run: the current directory: No such file");
        let mut command = shell_of_root(caller, LEAVE);
        command.args(["--mode", mode, "--workspace"]).arg(caller.workspace());
        let ended = finish(command.args(["--", "pwd", "-P"]))?;
        let directory = format!("{}\n", caller.workspace().canonicalize()?.display());
        problems.equal(mode, (ended.status.code(), ended.stdout), (Some(0), directory));
    }
    problems.verdict(&"an unmounted directory")
}

/// A directory whose parent the caller may not search any more: it can be used by whoever is in it,
/// and not by its name. Root may search everything.
fn behind_a_closed_door(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let place = caller.make_dir("door")?;
    let deep = caller.make_dir("door/deep")?;
    let elsewhere = caller.workspace();
    for mode in CONFINED {
        for named in [false, true] {
            fs::set_permissions(&place, Permissions::from_mode(0o755))?;
            let mut command = caller.command("sh");
            // As the caller leaves it: closed behind itself.
            let script = "chmod 600 ../../door && exec \"$0\" \"$@\" -- sh -c 'echo ran; : >new'";
            command.args(["-c", script]).arg(caller.program()).args(["--mode", mode]);
            if named {
                command.arg("--workspace").arg(&elsewhere).arg("--workdir").arg(&elsewhere);
            }
            let ended = finish(command.current_dir(&deep))?;
            fs::set_permissions(&place, Permissions::from_mode(0o755))?;
            let what = format!("{mode} {named}");
            if caller.persona().is_root() || named {
                problems.equal(&what, ended.stdout.as_str(), "ran\n");
                let new = if named { elsewhere.join("new") } else { deep.join("new") };
                problems.equal(&what, new.exists(), mode == "workspace-write");
            } else {
                problems.equal(
                    &what,
                    (ended.status.code(), ended.stdout.as_str()),
                    (Some(125), ""),
                );
                problems.equal(&what, ended.stderr.lines().count(), 1);
                let says =
                    format!("{}: Permission denied (EACCES)", deep.canonicalize()?.display());
                problems.contains(&what, &ended.stderr, &says);
                problems.equal(&what, deep.join("new").exists(), false);
            }
        }
    }
    problems.verdict(&"a closed door")
}

/// The kernel takes no name of more than 4,095 bytes, and the sandbox knows directories by name.
fn deeper_than_a_path(caller: &Caller) -> Verdict {
    let script =
        "for n in $(seq 30); do mkdir \"$D\" && cd -P \"$D\" || exit; done; exec \"$0\" \"$@\"";
    for mode in CONFINED {
        let mut command = caller.command("bash");
        command
            .args(["-c", script])
            .arg(caller.program())
            .args(["--mode", mode, "--", "touch", "x"]);
        let top = caller.make_dir(format!("deep-{mode}"))?;
        let ended = finish(command.env("D", "d".repeat(200)).current_dir(&top))?;
        assert_eq!(ended.status.code(), Some(125), "{mode}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{mode}: {}", ended.stderr);
        assert!(ended.stderr.contains("File name too long (ENAMETOOLONG)"), "{}", ended.stderr);
    }
    Ok(Completion::Completed)
}
