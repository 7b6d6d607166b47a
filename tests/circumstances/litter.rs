//! Nothing is left of a run, however it ends: not a name, not a time of change.

use std::fs::File;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::mess::{littering, run, words};
use crate::session::{CTRL_C, PROMPT, Session};
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::running::Running;
use crate::support::stage::shell_status;
use crate::support::suite::{Outcome, Stop};
use crate::surroundings::{PATIENCE, leaves_nothing, left_after};
use crate::{MODES, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in MODES {
        let mut add = |name: &str, test: fn(&Caller, &str) -> Verdict| {
            let name = format!("litter::{name}::{mode}");
            cases.extend(for_each_user(&name, move |caller| test(caller, mode)));
        };
        add("ended", ended);
        add("signalled", signalled);
        add("killed", killed);
        add("interrupted", interrupted);
    }
    cases.extend(for_each_user("litter::refused", refused));
    cases
}

/// Ways in which a command ends.
const ENDS: &[(&[&str], &str, i32)] = &[
    (&[], "exit 0", 0),
    (&[], "exit 7", 7),
    (&[], "kill -KILL $$", 128 + 9),
    (&[], "kill -SEGV $$", 128 + 11),
    (&[], "exec /nonexistent", 127),
    (&[], "exec /etc", 126),
    (&["--timeout", "100ms", "--kill-after", "100ms"], "sleep 300", 124),
    (
        &["--timeout", "100ms", "--kill-after", "100ms"],
        "trap '' TERM; while :; do sleep 1; done",
        124,
    ),
];

fn ended(caller: &Caller, mode: &str) -> Verdict {
    leaves_nothing(caller, |problems| {
        for &(options, end, status) in ENDS {
            let ended = finish(&mut run(caller, mode, options, end))?;
            problems.equal(end, ended.status.code(), Some(status));
            // dsh-run ends last.
            let left = left_after(caller, Duration::ZERO);
            problems.check(left.is_empty(), || format!("{end}: {left:?}"));
        }
        // The program itself cannot be executed.
        for (program, status) in [("/nonexistent", 127), ("/etc", 126)] {
            let mut command = caller.dsh_run(["--mode", mode, "--", program]);
            problems.equal(program, finish(&mut command)?.status.code(), Some(status));
        }
        Ok(())
    })
}

/// Refusals, each found out at a later moment than the one before: some only when there are mounts
/// already.
const REFUSALS: &[&[&str]] = &[
    &["--mode", "everything"],
    &["--mode", "workspace-write", "--writable", "/nonexistent"],
    &["--mode", "workspace-write", "--writable", "/"],
    &["--mode", "workspace-write", "--facts", "facts.json"],
    &["--mode", "read-only", "--facts", "/nonexistent/facts.json"],
    &["--mode", "read-only", "--script", "/nonexistent"],
    &["--mode", "danger-full-access", "--network", "off"],
    &["--mode", "read-only", "--workdir", "/nonexistent"],
    &["--mode", "workspace-write", "--workdir", "/tmp/directory"],
    &["--mode", "workspace-write", "--workdir", "/etc/passwd"],
    &["--mode", "danger-full-access", "--workdir", "/nonexistent"],
];

fn refused(caller: &Caller) -> Verdict {
    leaves_nothing(caller, |problems| {
        for options in REFUSALS {
            let mut command = caller.dsh_run(*options);
            if !options.contains(&"--script") {
                command.args(["--", "sh", "-c", ": >new; : >/tmp/new", "sh"]).arg(caller.path(""));
            }
            let ended = finish(&mut command)?;
            problems.equal(&options.join(" "), ended.status.code(), Some(125));
        }
        // And one for a descriptor.
        let mut command = caller.dsh_run(["--", "true"]);
        let ended = finish(command.stdin(File::open("/etc")?))?;
        problems.equal("a directory as input", ended.status.code(), Some(125));
        Ok(())
    })
}

/// A signal that dsh-run passes on, to a command that ends by it and to one that has to be made to.
fn signalled(caller: &Caller, mode: &str) -> Verdict {
    leaves_nothing(caller, |problems| {
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            for (trap, status) in [("", 128 + signal as i32), ("trap '' TERM INT HUP; ", 137)] {
                let end = format!("{trap}echo ready >&2; while :; do sleep 0.1; done");
                let mut command = run(caller, mode, &["--kill-after", "100ms"], &end);
                command.stdout(Stdio::null()).stderr(Stdio::piped());
                let mut running = Running::start(&mut command)?;
                problems.check(running.wait_for_stderr("ready")?, || "ended early".to_owned());
                kill(running.pid()?, signal)?;
                let ended = running.finish()?;
                problems.equal(&format!("{signal} {trap}"), ended.status.code(), Some(status));
                let left = left_after(caller, Duration::ZERO);
                problems.check(left.is_empty(), || format!("{signal} {trap}: {left:?}"));
            }
        }
        Ok(())
    })
}

/// How many are killed at each user and rung, and how many of them side by side.
const ROUNDS: u32 = 30;
const BATCH: u32 = 5;
/// The latest moment: by then the command sleeps.
const LATEST: Duration = Duration::from_millis(120);

/// Killed while the sandbox is being made and once the command runs: nobody is left to clean up, and
/// there is nothing to.
fn killed(caller: &Caller, mode: &str) -> Verdict {
    leaves_nothing(caller, |problems| {
        let report = caller.path("report/facts.json").to_string_lossy().into_owned();
        for first in (0..ROUNDS).step_by(BATCH as usize) {
            let strike = &|round: u32| -> io::Result<i32> {
                let mut command = run(caller, mode, &["--facts", &report], "sleep 300");
                let mut victim = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                std::thread::sleep(LATEST * round / ROUNDS);
                victim.kill()?;
                victim.wait().map(shell_status)
            };
            let statuses = std::thread::scope(|scope| {
                let batch = (first..first + BATCH).map(|round| scope.spawn(move || strike(round)));
                let strikes: Vec<_> = batch.collect();
                let panicked = |_| Err(io::Error::other("a round panicked"));
                let ends = strikes.into_iter().map(|one| one.join().unwrap_or_else(panicked));
                ends.collect::<io::Result<Vec<i32>>>()
            })?;
            problems.equal("statuses", statuses, vec![137; BATCH as usize]);
            let left = left_after(caller, PATIENCE);
            problems.check(left.is_empty(), || format!("after round {first}: {left:?}"));
        }
        Ok(())
    })
}

/// Ctrl-C at a terminal, where dsh-run is a job of a shell.
fn interrupted(caller: &Caller, mode: &str) -> Verdict {
    let script = format!("{}echo ready$((6*7)); sleep 300", littering(mode));
    let script = caller.make_file("littering", &script)?;
    let at_terminal = || -> Outcome {
        let mut session = Session::start(caller)?;
        session.line("unset HISTFILE")?;
        session.expect(PROMPT)?;
        let [mark, probe] = words(caller);
        let words =
            format!("--script {} -- {} {}", script.display(), mark.display(), probe.display());
        session.line(&format!("$D --mode {mode} {words}"))?;
        session.expect("ready42")?;
        session.keys(CTRL_C)?;
        session.expect(PROMPT)?;
        session.expect_status(130)
    };
    leaves_nothing(caller, |_| {
        at_terminal().map_err(|stop| match stop {
            Stop::Failed(failed) => {
                io::Error::other(failed.message().unwrap_or_default().to_owned())
            }
            Stop::Skipped(reason) => io::Error::other(reason),
        })
    })
}
