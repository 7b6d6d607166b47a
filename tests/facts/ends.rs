//! How a command ended.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::reading::{at, command, read, run};
use crate::support::caller::Caller;
use crate::support::running::Running;
use crate::support::suite::{Outcome, tests};

tests![a_code, a_signal, a_time_limit, the_callers_signal, not_executed];

const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

fn exit(code: impl Into<Value>, signal: impl Into<Value>, how: &str) -> Value {
    json!({
        "started": how != "not executed",
        "code": code.into(),
        "signal": signal.into(),
        "timed_out": how == "timed out",
        "aborted": how == "aborted",
    })
}

fn a_code(caller: &Caller) -> Outcome {
    for mode in MODES {
        for code in [0, 1, 124, 125, 126, 127, 137, 255] {
            let script = format!("exit {code}");
            let (ended, facts) = run(caller, &["--mode", mode, "-c", &script])?;
            assert_eq!(ended.status.code(), Some(code), "{mode}");
            assert_eq!(at(&facts, "/exit"), &exit(code, Value::Null, ""), "{mode}");
            assert_eq!(at(&facts, "/outcome"), "ran", "{mode}");
        }
    }
    Ok(())
}

fn a_signal(caller: &Caller) -> Outcome {
    for mode in MODES {
        for (name, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15), ("SYS", 31)] {
            let script = format!("kill -{name} $$");
            let (ended, facts) = run(caller, &["--mode", mode, "-c", &script])?;
            assert_eq!(ended.status.code(), Some(128 + number), "{mode}");
            assert_eq!(at(&facts, "/exit"), &exit(Value::Null, number, ""), "{mode}");
        }
    }
    Ok(())
}

fn a_time_limit(caller: &Caller) -> Outcome {
    for mode in MODES {
        let limit = ["--mode", mode, "--timeout", "100ms", "--kill-after", "200ms", "-c"];
        for (script, expected) in [
            ("sleep 300", exit(Value::Null, 15, "timed out")),
            ("trap 'exit 3' TERM; while :; do sleep 0.02; done", exit(3, Value::Null, "timed out")),
            ("trap '' TERM; while :; do sleep 0.02; done", exit(Value::Null, 9, "timed out")),
        ] {
            let (ended, facts) = run(caller, &[&limit[..], &[script]].concat())?;
            assert_eq!(ended.status.code(), Some(124), "{mode} {script}");
            assert_eq!(at(&facts, "/exit"), &expected, "{mode} {script}");
        }
    }
    Ok(())
}

fn the_callers_signal(caller: &Caller) -> Outcome {
    for mode in MODES {
        for (script, expected) in [
            ("echo ready >&2; sleep 300", exit(Value::Null, 15, "aborted")),
            (
                "trap 'exit 3' TERM; echo ready >&2; while :; do sleep 0.02; done",
                exit(3, Value::Null, "aborted"),
            ),
        ] {
            let facts = caller.path(crate::reading::FACTS);
            let mut command = caller.known_dsh_run(["--facts"]);
            command.arg(facts).args(["--mode", mode, "--timeout", "25s", "-c", script]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut running = Running::start(&mut command)?;
            assert!(running.wait_for_stderr("ready")?);
            kill(caller.pid()?, Signal::SIGTERM)?;
            running.finish()?;
            assert_eq!(at(&read(caller)?, "/exit"), &expected, "{mode} {script}");
        }
    }
    Ok(())
}

fn not_executed(caller: &Caller) -> Outcome {
    for mode in MODES {
        for (program, code) in [("/etc/passwd", 126), ("/missing", 127), ("dsh-missing", 127)] {
            let mut run = command(caller, &["--mode", mode, "--", program]);
            assert_eq!(run.stderr(Stdio::null()).status()?.code(), Some(code), "{mode}");
            let facts = read(caller)?;
            let expected = exit(code, Value::Null, "not executed");
            assert_eq!(at(&facts, "/exit"), &expected, "{mode} {program}");
            assert_eq!(at(&facts, "/outcome"), "ran", "{mode} {program}");
            assert_eq!(at(&facts, "/error"), &Value::Null, "{mode} {program}");
        }
    }
    Ok(())
}
