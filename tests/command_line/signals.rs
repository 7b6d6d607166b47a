//! Signals and time limits: what reaches the command, and what does not reach its caller.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::caller::{Caller, finish};
use crate::support::running::{Finished, Running};
use crate::support::suite::{Outcome, Stop, tests};

tests![
    ignored_by_the_caller,
    ends_of_children_ignored_by_the_caller,
    blocked_by_the_caller,
    sent_to_dsh_run,
    a_command_that_traps_the_end,
    a_signal_that_the_command_ignores,
    a_stopped_command_is_still_ended,
    what_the_command_leaves_is_ended,
];

const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

/// Runs `inside` with `dsh-run`, which a caller starts that ignores the signals.
fn run_ignoring(
    caller: &Caller,
    signals: &str,
    mode: &str,
    inside: &str,
) -> std::io::Result<Finished> {
    // bash, because dash does not hand an ignored SIGCHLD on.
    let mut command = caller.command("bash");
    let script = format!("trap '' {signals}; exec \"$0\" --mode \"$1\" -c \"$2\"");
    finish(command.args(["-c", &script]).arg(caller.program()).args([mode, inside]))
}

fn ignored_by_the_caller(caller: &Caller) -> Outcome {
    for mode in MODES {
        let inside = "grep SigIgn /proc/self/status; exit 7";
        let ended = run_ignoring(caller, "PIPE INT TERM HUP USR1 TTOU", mode, inside)?;
        assert_eq!(ended.status.code(), Some(7), "{mode}: {}", ended.stderr);
        let mask = ended.stdout.strip_prefix("SigIgn:\t").unwrap_or_default().trim();
        assert_eq!(u64::from_str_radix(mask, 16)?, 0, "{mode}: {}", ended.stdout);
        let inside = "yes | head -1; echo ${PIPESTATUS[0]}";
        let ended = run_ignoring(caller, "PIPE", mode, inside)?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("y\n141\n", ""), "{mode}");
    }
    Ok(())
}

fn ends_of_children_ignored_by_the_caller(caller: &Caller) -> Outcome {
    // Children of a process that ignores SIGCHLD leave no status behind, wait(2).
    for mode in MODES {
        let ended = run_ignoring(caller, "CHLD", mode, "grep SigIgn /proc/self/status; exit 7")?;
        assert_eq!(ended.status.code(), Some(7), "{mode}: {}", ended.stderr);
    }
    Ok(())
}

fn blocked_by_the_caller(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut command = caller.command("env");
        command.arg("--block-signal").arg(caller.program());
        command.args(["--mode", mode, "--timeout", "20s", "--", "sh", "-c"]);
        let ended = finish(command.arg("grep SigBlk /proc/self/status; exit 7"))?;
        assert_eq!(ended.status.code(), Some(7), "{mode}: {}", ended.stderr);
        assert_eq!(ended.stdout, "SigBlk:\t0000000000000000\n", "{mode}");
    }
    Ok(())
}

/// Starts a script in a process group of its caller's, and waits until it says `ready` on stderr.
fn start(caller: &Caller, options: &[&str], script: &str) -> Result<(Running, Pid), Stop> {
    let mut command = caller.known_dsh_run(options.iter().chain(&["-c", script]));
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command)?;
    assert!(running.wait_for_stderr("ready")?, "it ended early: {command:?}");
    Ok((running, caller.pid()?))
}

fn sent_to_dsh_run(caller: &Caller) -> Outcome {
    for mode in MODES {
        for (signal, name) in [
            (Signal::SIGTERM, "TERM"),
            (Signal::SIGINT, "INT"),
            (Signal::SIGHUP, "HUP"),
            (Signal::SIGQUIT, "QUIT"),
        ] {
            // The whole group hears it: the shell and the child that it waits for.
            let script = format!(
                "trap 'echo outer; exit 9' {name}; \
                 bash -c 'trap \"echo inner; exit 4\" {name}; echo ready >&2; \
                          while :; do sleep 0.02; done'; echo not reached"
            );
            let (running, process) = start(caller, &["--mode", mode], &script)?;
            // A member of the caller's group, as the caller is.
            let mut witness =
                Command::new("sleep").arg("300").process_group(process.as_raw()).spawn()?;
            kill(process, signal)?;
            let ended = running.finish()?;
            let alive = witness.try_wait()?.is_none();
            witness.kill()?;
            witness.wait()?;
            assert_eq!(ended.stdout, "inner\nouter\n", "{mode} {name}: {}", ended.stderr);
            assert_eq!(ended.status.code(), Some(9), "{mode} {name}");
            assert!(alive, "{mode} {name} reached the caller's group");
        }
        // The same without a trap: the status tells the signal.
        let script = "echo ready >&2; sleep 300";
        let (running, process) = start(caller, &["--mode", mode], script)?;
        kill(process, Signal::SIGTERM)?;
        assert_eq!(running.finish()?.status.code(), Some(128 + 15), "{mode}");
    }
    Ok(())
}

fn a_command_that_traps_the_end(caller: &Caller) -> Outcome {
    for mode in MODES {
        let start = Instant::now();
        let options = ["--mode", mode, "--timeout", "100ms", "--kill-after", "300ms", "-c"];
        let mut command = caller.dsh_run(options);
        let ended = finish(command.arg("trap 'echo asked' TERM; while :; do sleep 0.05; done"))?;
        assert_eq!(ended.status.code(), Some(124), "{mode}: {}", ended.stderr);
        assert!(ended.stdout.starts_with("asked\n"), "{mode}: {}", ended.stdout);
        assert!(start.elapsed() >= Duration::from_millis(400), "{mode}: killed too early");
        // What ends in its own way when asked may say so; it is a time-out all the same.
        let mut command = caller.dsh_run(options);
        let ended =
            finish(command.arg("trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done"))?;
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(124), "bye\n"), "{mode}");
    }
    Ok(())
}

fn a_signal_that_the_command_ignores(caller: &Caller) -> Outcome {
    for mode in MODES {
        let script = "trap '' TERM; echo ready >&2; while :; do sleep 0.05; done";
        let (running, process) = start(caller, &["--mode", mode, "--kill-after", "200ms"], script)?;
        kill(process, Signal::SIGTERM)?;
        assert_eq!(running.finish()?.status.code(), Some(128 + 9), "{mode}");
    }
    Ok(())
}

fn a_stopped_command_is_still_ended(caller: &Caller) -> Outcome {
    for mode in MODES {
        // Without a terminal nobody continues it: the time limit goes on.
        let script = "trap 'exit 3' TERM; kill -STOP $$; sleep 300";
        let ended =
            finish(&mut caller.dsh_run(["--mode", mode, "--timeout", "200ms", "-c", script]))?;
        assert_eq!(ended.status.code(), Some(124), "{mode}");
        let script = "echo ready >&2; kill -STOP $$; sleep 300";
        let (running, process) = start(caller, &["--mode", mode], script)?;
        kill(process, Signal::SIGTERM)?;
        assert_eq!(running.finish()?.status.code(), Some(128 + 15), "{mode}");
    }
    Ok(())
}

fn what_the_command_leaves_is_ended(caller: &Caller) -> Outcome {
    for mode in MODES {
        // A session of its own and no parent left: only the end of the run ends it. Whatever it
        // holds of the output would keep the collection below waiting.
        let script = "(setsid sleep 300 &) ; setsid sleep 300 & sleep 0.1; exit 6";
        let begin = Instant::now();
        let ended = finish(&mut caller.dsh_run(["--mode", mode, "-c", script]))?;
        assert_eq!(ended.status.code(), Some(6), "{mode}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{mode}");
        // The same when dsh-run cannot do anything about it any more.
        let script = "(setsid sleep 300 &) ; echo ready >&2; sleep 300";
        let (running, process) = start(caller, &["--mode", mode], script)?;
        kill(process, Signal::SIGKILL)?;
        let ended = running.finish()?;
        assert_eq!(ended.status.signal(), Some(9), "{mode}");
    }
    Ok(())
}
