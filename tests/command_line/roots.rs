//! Which directories may be a workspace, and where a command may start.

use std::ffi::OsStr;

use crate::support::caller::{Caller, finish};
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    a_workspace_that_is_no_directory,
    a_writable_root_that_is_no_directory,
    a_root_that_is_or_holds_a_place_of_the_sandbox,
    the_home_directory,
    a_narrower_rung_takes_any_workspace,
    a_directory_that_the_sandbox_does_not_show,
    a_current_directory_that_is_gone,
];

const WRITE: [&str; 2] = ["--mode", "workspace-write"];

fn a_workspace_that_is_no_directory(caller: &Caller) -> Outcome {
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        for (path, errno) in
            [("../missing", "ENOENT"), ("/etc/passwd", "ENOTDIR"), ("/dev/null", "ENOTDIR")]
        {
            let mut command = marked(caller, ["--mode", mode, "--workspace", path]);
            let says = ["workspace", path, errno, "existing directory with --workspace"];
            assert_refused(caller, &mut command, &says)?;
        }
    }
    Ok(())
}

fn a_writable_root_that_is_no_directory(caller: &Caller) -> Outcome {
    for (path, errno) in [("../missing", "ENOENT"), ("/etc/passwd", "ENOTDIR")] {
        let mut command = marked(caller, WRITE.iter().chain(&["--writable", path]));
        let says = ["writable root", path, errno, "existing directory with --writable"];
        assert_refused(caller, &mut command, &says)?;
    }
    Ok(())
}

fn a_root_that_is_or_holds_a_place_of_the_sandbox(caller: &Caller) -> Outcome {
    std::os::unix::fs::symlink("/tmp", caller.path("link"))?;
    for (path, reason) in [
        ("/", "whole host"),
        ("/tmp", "is /tmp"),
        ("/tmp/.", "is /tmp"),
        ("../link", "is /tmp"),
        ("/dev/shm", "is /dev/shm"),
        ("/dev", "/dev"),
        ("/dev/pts", "interface of the kernel"),
        ("/proc", "is /proc"),
        ("/proc/self/task", "interface of the kernel"),
        ("/sys", "is /sys"),
        ("/sys/kernel", "interface of the kernel"),
    ] {
        for option in ["--workspace", "--writable"] {
            let mut command = marked(caller, WRITE.iter().chain(&[option, path]));
            let says = [reason, "workspace-write", "name a directory"];
            assert_refused(caller, &mut command, &says)?;
        }
    }
    Ok(())
}

fn the_home_directory(caller: &Caller) -> Outcome {
    let base = caller.path(".").canonicalize()?;
    for (path, verb) in [("../home", "is the home directory"), ("..", "holds the home directory")] {
        for option in ["--workspace", "--writable"] {
            let mut command = marked(caller, WRITE.iter().chain(&[option, path]));
            let says = [verb, "--allow-home", "workspace-write"];
            assert_refused(caller, &mut command, &says)?;
        }
        let options = ["--allow-home", "--workspace", path, "--workdir"];
        let mut command = caller.dsh_run(WRITE.iter().chain(&options));
        command.arg(base.join("workspace").join(path)).args(["--", "sh", "-c", "echo x >new"]);
        let ended = finish(&mut command)?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{path}");
        assert_eq!(std::fs::read_to_string(caller.workspace().join(path).join("new"))?, "x\n");
    }
    Ok(())
}

fn a_narrower_rung_takes_any_workspace(caller: &Caller) -> Outcome {
    for path in ["/", "/tmp", "/dev", "/dev/shm", "/proc", "/sys", "../home", ".."] {
        for mode in ["read-only", "danger-full-access"] {
            let arguments = ["--mode", mode, "--workspace", path, "--", "echo", "ran"];
            let ended = finish(&mut caller.dsh_run(arguments))?;
            assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{path}");
            assert_eq!(ended.stdout, "ran\n", "{mode} {path}");
        }
    }
    Ok(())
}

fn a_directory_that_the_sandbox_does_not_show(caller: &Caller) -> Outcome {
    let hidden = tempfile::tempdir_in("/tmp")?;
    caller.persona().own(hidden.path())?;
    let below = hidden.path().join("below");
    std::fs::create_dir(&below)?;
    caller.persona().own(&below)?;
    let workspace = caller.workspace();
    let remedy = "name another with --workdir";
    for mode in ["read-only", "workspace-write"] {
        let options =
            || ["--mode".as_ref(), mode.as_ref(), "--workspace".as_ref(), workspace.as_os_str()];
        for place in [OsStr::new("/tmp"), hidden.path().as_os_str()] {
            let says = ["cannot see the directory", &place.to_string_lossy(), remedy];
            let mut command = marked(caller, options());
            assert_refused(caller, command.current_dir(place), &says)?;
        }
        for place in [hidden.path(), &below, &caller.path("missing")] {
            let says = ["cannot see the directory", &place.to_string_lossy(), "ENOENT", remedy];
            let workdir = [OsStr::new("--workdir"), place.as_os_str()];
            let mut command = marked(caller, options().into_iter().chain(workdir));
            assert_refused(caller, &mut command, &says)?;
        }
        let workdir = [OsStr::new("--workdir"), OsStr::new("/etc/passwd")];
        let mut command = marked(caller, options().into_iter().chain(workdir));
        assert_refused(caller, &mut command, &["/etc/passwd", "ENOTDIR", remedy])?;
    }
    // The workspace itself is shown, wherever it lies.
    for mode in ["read-only", "workspace-write"] {
        let mut command = caller.dsh_run(["--mode", mode, "--", "pwd"]);
        let ended = finish(command.current_dir(&below).env("PWD", &below))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{mode}");
        assert_eq!(ended.stdout.trim_end(), below.to_string_lossy(), "{mode}");
    }
    Ok(())
}

fn a_current_directory_that_is_gone(caller: &Caller) -> Outcome {
    let place = caller.make_dir("gone")?;
    let mut command = caller.command("sh");
    command.current_dir(&place).arg("-c").arg("rmdir ../gone && exec \"$0\" -- echo ran");
    assert_refused(caller, command.arg(caller.program()), &["directory", "ENOENT"])
}
