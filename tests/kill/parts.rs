//! A part of the sandbox killed under a command that runs.

use dsh_facts::{ErrorCode, Outcome};
use nix::sys::signal::Signal;

use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::Programs;
use crate::victim::{DAEMONS, GRACE, Place, Victim};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in Place::all() {
        for part in ["dsh-warden", "dsh-init"] {
            let place = place.clone();
            let name = format!("parts::{part}::{}", place.label());
            cases.push(Case::new(name, move |programs| ends_everything(programs, &place, part)));
        }
    }
    cases
}

/// The command does not go on without it, dsh-run says so, and never tries again with less.
fn ends_everything(programs: &Programs, place: &Place, part: &str) -> Verdict {
    if let Some(reason) = place.obstacle() {
        return skip(reason);
    }
    let text = format!("{DAEMONS}\nwhile :; do sleep 60; done");
    let mut victim = Victim::start(programs, place, &[], &text)?;
    victim.wait_started()?;
    let target = victim.part(part)?;
    victim.strike(target, Signal::SIGKILL)?;
    let status = victim.wait()?;
    let mut problems = Problems::default();
    problems.equal("status", status, 125);
    let left = victim.left_after(GRACE);
    problems.check(left.is_empty(), || format!("left behind: {left:?}"));
    let size = victim.written();
    std::thread::sleep(GRACE / 10);
    problems.equal("size of the file", victim.written(), size);
    let said = victim.stderr()?;
    problems.equal("lines on stderr", said.lines().count(), 1);
    problems.contains("stderr", &said, "dsh-run: ");
    let facts = victim.facts()?;
    problems.equal("outcome", facts.outcome, Outcome::Ran);
    let code = facts.error.as_ref().map(|error| error.code);
    problems.equal("code", code, Some(ErrorCode::RunnerFailed));
    problems.equal("exit code", facts.exit.and_then(|exit| exit.code), None);
    problems.verdict(&(said, facts))
}
