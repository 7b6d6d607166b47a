//! A command that will not end in its time.

use std::time::{Duration, Instant};

use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::Programs;
use crate::victim::{DAEMONS, Place, Victim};

pub(crate) fn cases() -> Vec<Case> {
    let case = |place: Place| {
        let name = format!("timeout::{}", place.label());
        Case::new(name, move |programs| ends_in_time(programs, &place))
    };
    Place::all().map(case).into()
}

/// It ignores what asks it to end, and is ended; its daemons, which nobody asks, too.
fn ends_in_time(programs: &Programs, place: &Place) -> Verdict {
    const TIMEOUT: Duration = Duration::from_millis(400);
    const KILL_AFTER: Duration = Duration::from_millis(300);
    /// For the start of dsh-run and its end, on a loaded machine.
    const SLACK: Duration = Duration::from_millis(1500);
    if let Some(reason) = place.obstacle() {
        return skip(reason);
    }
    let text = format!("trap '' TERM HUP INT\n{DAEMONS}\nwhile :; do sleep 0.1; done");
    let options = ["--timeout", "400ms", "--kill-after", "300ms"];
    let start = Instant::now();
    let mut victim = Victim::start(programs, place, &options, &text)?;
    let status = victim.wait()?;
    let took = start.elapsed();
    let mut problems = Problems::default();
    problems.equal("status", status, 124);
    // When dsh-run has ended, so has everything.
    let left = victim.left_after(Duration::ZERO);
    problems.check(left.is_empty(), || format!("left behind: {left:?}"));
    let whole = TIMEOUT + KILL_AFTER;
    problems.check(took >= whole && took < whole + SLACK, || format!("took {took:?}"));
    problems.check(victim.written() > 0, || "the daemons never wrote".to_owned());
    let facts = victim.facts()?;
    problems.equal("timed out", facts.exit.map(|exit| exit.timed_out), Some(true));
    problems.verdict(&(victim.stderr()?, facts))
}
