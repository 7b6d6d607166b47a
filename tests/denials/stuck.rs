//! Paths on file systems that never answer: whoever asks them waits, and nobody else; and a command
//! that waits can be ended.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::outside::Outside;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::dead_mounts::{LAST, Swallowing, Unread};
use crate::support::observed::{Observed, script, start};
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::Stage;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("stuck::beside-another-command", beside_another);
    cases.extend(for_each_rung("stuck::beside-another-program", beside_another_program));
    cases.extend(for_each_rung("stuck::ended", ended));
    cases.extend(for_each_rung("stuck::past-killing", past_killing));
    cases
}

/// A file system that never answers, at `@/outside/dead`.
fn with_dead(
    caller: &Caller,
    test: impl FnOnce(&mut Problems) -> io::Result<()> + Send,
) -> Verdict {
    if let Some(reason) = obstacle() {
        return skip(reason);
    }
    caller.make_dir("outside")?;
    let place = caller.make_dir("outside/dead")?;
    let mut problems = Problems::default();
    with_private_mounts(|| {
        let _guard = Unread::mount(&place)?;
        test(&mut problems)
    })?;
    problems.verdict(&"")
}

fn obstacle() -> Option<&'static str> {
    let device = std::path::Path::new("/dev/fuse").exists();
    Stage::obstacle().or((!device).then_some("no /dev/fuse"))
}

/// Says that it waits, and waits.
const WAITS: &str = "echo waits >&2; touch $T/outside/dead/new";

fn beside_another(caller: &Caller, mode: &str) -> Verdict {
    let neighbour = Caller::new(caller.persona(), caller.program().to_owned())?;
    let outside = Outside::of(&neighbour)?;
    with_dead(caller, |problems| {
        let mut waiting = start(caller, &["--mode", mode], script(caller, WAITS), Stdio::null())?;
        problems.check(waiting.wait_for_stderr("waits")?, || "it did not start".to_owned());
        let text = "touch $T/outside/new; touch /tmp/new; exit 4";
        let ran = Observed::run(&neighbour, &["--mode", mode], script(&neighbour, text))?;
        problems.equal("status", ran.status, 4);
        let line = "open write @/outside/new EROFS mount touch 1";
        ran.check_denials(problems, "beside", &[line]);
        outside.check(problems)?;
        kill(waiting.pid()?, Signal::SIGTERM)?;
        let ended = Observed::of(caller, waiting)?;
        problems.check(ended.status > 128, || format!("the waiting one: {}", ended.status));
        Ok(())
    })
}

/// Within one command the others go on too; and a connection that cannot be decided about is
/// refused.
fn beside_another_program(caller: &Caller, mode: &str) -> Verdict {
    with_dead(caller, |problems| {
        let text = "touch $T/outside/dead/new & sleep 0.2
            mkdir $T/outside/new; touch /tmp/new && $P unix-own /tmp/s /tmp/s STREAM
            $P unix-connect $T/outside/dead/socket STREAM; exit 5";
        let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
        problems.equal("status", ran.status, 5);
        let line = "mkdir write @/outside/new EROFS mount mkdir 1".to_owned();
        problems.check(ran.denials().contains(&line), || format!("no {line}: {ran:?}"));
        let answers = ran.answers()?;
        problems.equal("answers", answers.len(), 2);
        problems.check(answers[0].starts_with("getpeername ok"), || answers[0].clone());
        problems.equal("undecided", answers[1].as_str(), "connect EACCES");
        ran.check_shape(problems, "beside");
        Ok(())
    })
}

/// Whoever waits here waits for ever: that a run ends at all proves that it was ended.
fn ended(caller: &Caller, mode: &str) -> Verdict {
    with_dead(caller, |problems| {
        let options = ["--mode", mode, "--kill-after", "300ms"];
        let text = format!("touch $T/outside/new; {WAITS}");
        let line = "open write @/outside/new EROFS mount touch 1".to_owned();
        let timed = [&options[..], &["--timeout", "2s"]].concat();
        let ran = Observed::run(caller, &timed, script(caller, &text))?;
        problems.equal("timed out", ran.status, 124);
        problems.check(ran.denials().contains(&line), || format!("timed out: {ran:?}"));
        for early in [Duration::ZERO, Duration::from_millis(1500)] {
            for signal in [Signal::SIGTERM, Signal::SIGINT] {
                let mut waiting = start(caller, &options, script(caller, &text), Stdio::null())?;
                problems.check(waiting.wait_for_stderr("waits")?, || "it ended".to_owned());
                std::thread::sleep(early);
                kill(waiting.pid()?, signal)?;
                let ran = Observed::of(caller, waiting)?;
                problems.check(ran.status > 128, || format!("{signal}: {}", ran.status));
                problems.check(ran.denials().contains(&line), || format!("{signal}: {ran:?}"));
            }
        }
        Ok(())
    })
}

/// Whoever asks this file system cannot be killed. The observer's own asking must not keep a command
/// from ending that has not asked yet.
fn past_killing(caller: &Caller, mode: &str) -> Verdict {
    if let Some(reason) = obstacle() {
        return skip(reason);
    }
    caller.make_dir("outside")?;
    let place = caller.make_dir("outside/dead")?;
    let mut problems = Problems::default();
    let (ran, dead) = with_private_mounts(|| {
        let server = Swallowing::mount(&place, &caller.path("release"))?;
        assert!(!place.join(LAST).exists());
        let options = ["--mode", mode, "--timeout", "500ms", "--kill-after", "100ms"];
        let text = "touch $T/outside/new; touch $T/outside/dead/a/new";
        let ran = Observed::run(caller, &options, script(caller, text));
        Ok((ran?, server.end()?))
    })?;
    problems.check(dead, || "it waited for the server".to_owned());
    problems.equal("status", ran.status, 124);
    let line = "open write @/outside/new EROFS mount touch 1";
    ran.check_denials(&mut problems, "denials", &[line]);
    problems.verdict(&ran)
}
