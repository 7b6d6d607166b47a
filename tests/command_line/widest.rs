//! danger-full-access: nothing is confined, and nothing about the command differs from one that its
//! caller started itself.

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![the_kernels_view_is_the_callers, the_files_are_the_hosts, a_cleared_capability_set_stays];

fn the_kernels_view_is_the_callers(caller: &Caller) -> Outcome {
    // Ignored signals are not compared: they are reset on every rung, since the one that Rust's
    // runtime ignores would otherwise be the command's.
    let script = "for n in /proc/self/ns/*; do readlink $n; done; umask; ulimit -a; \
                  grep -E '^(NoNewPrivs|Seccomp|Seccomp_filters|Cap|Uid|Gid|Groups|SigBlk)' \
                  /proc/self/status; cat /proc/self/cgroup /proc/self/mountinfo; nice";
    let outside = finish(caller.command("bash").args(["-c", script]))?;
    let inside = finish(&mut caller.dsh_run(["--mode", "danger-full-access", "-c", script]))?;
    assert_eq!((inside.stdout, inside.stderr), (outside.stdout, outside.stderr));
    Ok(())
}

fn the_files_are_the_hosts(caller: &Caller) -> Outcome {
    let host = tempfile::tempdir_in("/tmp")?;
    caller.persona().own(host.path())?;
    let mut command = caller.dsh_run(["--mode", "danger-full-access", "--", "sh", "-c"]);
    command.arg("echo x >\"$1/new\"; echo y >../beside").arg("sh").arg(host.path());
    let ended = finish(&mut command)?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(host.path().join("new"))?, "x\n");
    assert_eq!(std::fs::read_to_string(caller.path("beside"))?, "y\n");
    Ok(())
}

fn a_cleared_capability_set_stays(caller: &Caller) -> Outcome {
    // Being run without no_new_privs, a command keeps what its caller could still gain.
    let script = "grep CapBnd /proc/self/status";
    let outside = finish(caller.command("sh").args(["-c", script]))?.stdout;
    let inside =
        finish(&mut caller.dsh_run(["--mode", "danger-full-access", "--", "sh", "-c", script]))?;
    assert_eq!(inside.stdout, outside);
    Ok(())
}
