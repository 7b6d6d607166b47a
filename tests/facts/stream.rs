//! The stream of facts: lines as things happen, and no last line from a run that is killed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::reading::{CONFINED, at, lines, stream, streaming};
use crate::support::caller::{Caller, finish};
use crate::support::running::Running;
use crate::support::suite::{Outcome, tests};

tests![
    a_run_starts_and_exits,
    a_refused_run,
    a_command_that_cannot_be_executed,
    a_killed_run_has_no_last_line,
    the_start_is_told_while_the_command_runs,
    a_reader_that_has_gone_away,
];

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["event"].as_str()).collect()
}

fn a_run_starts_and_exits(caller: &Caller) -> Outcome {
    for (mode, network) in
        [("read-only", "loopback"), ("workspace-write", "loopback"), ("danger-full-access", "host")]
    {
        let (ended, lines) = stream(caller, &["--mode", mode, "-c", "exit 6"])?;
        std::fs::remove_file(caller.path("stream"))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(6), ""), "{mode}");
        assert_eq!(events(&lines), ["started", "exit"], "{mode}");
        for (pointer, expected) in
            [("/version", json!(1)), ("/mode", json!(mode)), ("/network", json!(network))]
        {
            for line in &lines {
                assert_eq!(at(line, pointer), &expected, "{mode} {pointer}: {line:#}");
            }
        }
        assert_eq!(at(&lines[0], "/enforcement"), at(&lines[1], "/enforcement"), "{mode}");
        assert_eq!(at(&lines[0], "/enforcement").is_null(), mode == "danger-full-access");
        assert_eq!(at(&lines[1], "/exit/code"), 6, "{mode}");
        assert_eq!(at(&lines[1], "/outcome"), "ran", "{mode}");
    }
    Ok(())
}

fn a_refused_run(caller: &Caller) -> Outcome {
    let (ended, lines) = stream(caller, &["--workspace", "missing", "--", "echo", "ran"])?;
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
    assert_eq!(events(&lines), ["refused"]);
    assert_eq!(at(&lines[0], "/outcome"), "refused");
    assert_eq!(at(&lines[0], "/error/code"), "INVALID_REQUEST");
    Ok(())
}

fn a_command_that_cannot_be_executed(caller: &Caller) -> Outcome {
    let (ended, lines) = stream(caller, &["--", "/missing"])?;
    assert_eq!(ended.status.code(), Some(127));
    assert_eq!(events(&lines), ["started", "exit"]);
    assert_eq!(at(&lines[1], "/exit/started"), false);
    Ok(())
}

/// Starts a command that runs until its standard input ends, and waits for the first line: it is
/// written when the command goes on to exec, not before.
fn start_waiting(caller: &Caller, mode: &str) -> std::io::Result<Running> {
    let mut command = streaming(caller, &["--mode", mode, "-c", "echo ready >&2; cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command)?;
    assert!(running.wait_for_stderr("ready")?);
    let begin = Instant::now();
    while !std::fs::read_to_string(caller.path("stream"))?.ends_with('\n') {
        assert!(begin.elapsed() < Duration::from_secs(20), "no first line");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(running)
}

fn a_killed_run_has_no_last_line(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let running = start_waiting(caller, mode)?;
        kill(caller.pid()?, Signal::SIGKILL)?;
        running.finish()?;
        assert_eq!(events(&lines(caller)?), ["started"], "{mode}");
        std::fs::remove_file(caller.path("stream"))?;
    }
    Ok(())
}

fn the_start_is_told_while_the_command_runs(caller: &Caller) -> Outcome {
    let mut running = start_waiting(caller, "read-only")?;
    assert_eq!(events(&lines(caller)?), ["started"]);
    drop(running.stdin());
    running.finish()?;
    assert_eq!(events(&lines(caller)?), ["started", "exit"]);
    Ok(())
}

fn a_reader_that_has_gone_away(caller: &Caller) -> Outcome {
    // What became of the facts does not change what becomes of the command.
    let script = "\"$0\" --facts-fd 9 -c 'echo ran; exit 5' 9> >(exec 0<&-); echo $?";
    let ended = finish(caller.command("bash").args(["-c", script]).arg(caller.program()))?;
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("ran\n5\n", ""));
    Ok(())
}
