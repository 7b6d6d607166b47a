//! How denials are told: over the stream as they come, and to a person at the end.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_facts::Event;

use crate::outside::Outside;
use crate::session::{PROMPT, Session};
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::script;
use crate::support::problems::Problems;
use crate::support::running::{Finished, Running};
use crate::support::suite::{Outcome, conclude};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("telling::stream", stream);
    cases.extend(for_each_user("telling::stream-while-it-runs", while_it_runs));
    cases.extend(for_each_rung("telling::summary", summary));
    cases.extend(for_each_user("telling::no-summary", no_summary));
    cases.extend(for_each_user("telling::at-a-terminal", |caller| conclude(at_a_terminal(caller))));
    cases
}

/// dsh-run with its stream in a file beside the workspace.
fn streaming(caller: &Caller, mode: &str, text: &str) -> Command {
    let mut command = caller.command("sh");
    command.args(["-c", r#"exec "$0" --facts-fd 7 --mode "$@" 7>../stream"#]);
    command.arg(caller.program()).args([mode, "--"]).args(script(caller, text));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What has come over the stream so far.
fn events(caller: &Caller) -> io::Result<Vec<Event>> {
    let text = fs::read_to_string(caller.path("stream"))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

/// The first of each kind, and the counts in the end.
fn stream(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "touch $T/outside/new; rmdir $T/outside/empty; touch $T/outside/new; exit 3";
    finish(&mut streaming(caller, mode, text))?;
    let told = events(caller)?;
    let [Event::Started { .. }, Event::Denial(first), Event::Denial(second), Event::Exit(facts)] =
        &told[..]
    else {
        return Err(format!("other events: {told:#?}").into());
    };
    let top = caller.path("").display().to_string();
    let place = |name: &str| Some(format!("{top}outside/{name}"));
    problems.equal("first", (first.operation.as_str(), &first.path), ("open", &place("new")));
    problems.equal("second", (second.operation.as_str(), &second.path), ("rmdir", &place("empty")));
    problems.equal("counts so far", (first.count, second.count), (1, 1));
    let mut whole = first.clone();
    whole.count = 2;
    problems.equal("listed", facts.denials.clone(), vec![whole, second.clone()]);
    outside.check(&mut problems)?;
    problems.verdict(&told)
}

/// A line is there as soon as the denial is.
fn while_it_runs(caller: &Caller) -> Verdict {
    const LONG: Duration = Duration::from_secs(20);
    Outside::of(caller)?;
    let text = "touch $T/outside/new; cat";
    let mut running = Running::start(&mut streaming(caller, "read-only", text))?;
    let begin = Instant::now();
    let denial = |event: &Event| matches!(event, Event::Denial(_));
    while !events(caller).is_ok_and(|told| told.iter().any(denial)) {
        if begin.elapsed() > LONG {
            return Err("nothing was told".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(running.stdin());
    let ended = running.finish()?;
    let mut problems = Problems::default();
    problems.equal("status", ended.status.code(), Some(0));
    problems.equal("events", events(caller)?.len(), 3);
    problems.verdict(&ended.stderr)
}

fn run(caller: &Caller, options: &[&str], text: &str) -> io::Result<Finished> {
    finish(caller.dsh_run(options).arg("--").args(script(caller, text)))
}

/// Ten lines, each with what was tried, what refused it and what would allow it; then how many more.
fn summary(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "for n in 0 1 2 3 4 5 6 7 8 9 10 11; do mkdir $T/outside/n$n; done 2>/dev/null; 
        mkdir $T/outside/n3 2>/dev/null; exit 4";
    let ended = run(caller, &["--mode", mode, "--summary"], text)?;
    problems.equal("status", ended.status.code(), Some(4));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let place = caller.path("outside").display().to_string();
    let remedy = format!("--writable {place}");
    for number in 0..10 {
        let line = lines.iter().find(|line| line.contains(&format!("{place}/n{number}:")));
        let Some(line) = line else {
            problems.check(false, || format!("nothing about n{number}"));
            continue;
        };
        for part in ["mkdir", "EROFS", "mount", &remedy] {
            problems.contains("line", line, part);
        }
        problems.equal(line, line.contains("2 times"), number == 3);
    }
    let too_many = lines.iter().any(|line| line.contains("/n10:") || line.contains("/n11:"));
    problems.check(!too_many, || "more than ten".to_owned());
    problems.contains("the rest", lines.last().unwrap_or(&""), "2 more");
    problems.equal("lines", lines.len(), 12);
    problems.check(ended.stderr.starts_with("dsh-run: "), || "whose lines are these?".to_owned());
    outside.check(&mut problems)?;
    problems.verdict(&ended.stderr)
}

fn no_summary(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    Outside::of(caller)?;
    let denied = "mkdir $T/outside/new 2>/dev/null; exit ";
    for (options, text) in [
        (&["--quiet"][..], format!("{denied} 1")),
        (&["--quiet"], format!("{denied} 0")),
        (&["--summary"], format!("{denied} 0")),
        (&["--summary"], "exit 1".to_owned()),
        (&["--summary", "--observe", "off"], format!("{denied} 1")),
        // Nobody looks: standard error is no terminal.
        (&[], format!("{denied} 1")),
    ] {
        let ended = run(caller, options, &text)?;
        problems.equal(&format!("{options:?} {text}"), ended.stderr.as_str(), "");
    }
    problems.verdict(&"")
}

fn at_a_terminal(caller: &Caller) -> Outcome {
    Outside::of(caller)?;
    let mut session = Session::start(caller)?;
    session.line("$D -- sh -c 'mkdir ../outside/new 2>/dev/null; exit 1'")?;
    session.expect("outside/new: EROFS by mount")?;
    session.expect(PROMPT)?;
    session.line("$D --quiet -c 'mkdir ../outside/new 2>/dev/null; echo quiet$((6*7)); exit 1'")?;
    session.expect(&format!("quiet42\r\n{PROMPT}"))
}
