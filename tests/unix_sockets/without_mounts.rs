//! Where a command has no mounts of its own, and so no scratch: what lies below the writable roots
//! is what it reaches.

use crate::host::Listener;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{Fixture, own};
use crate::support::observed::CONFINED;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::Programs;
use crate::support::staged::{STAGES, Staged};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for staged in STAGES {
        for mode in CONFINED {
            let name = format!("without_mounts::of-the-host::{mode}::{}", staged.name);
            cases.push(Case::new(name, move |programs| of_the_host(programs, &staged, mode)));
        }
        let name = format!("without_mounts::own::{}", staged.name);
        cases.push(Case::new(name, move |programs| of_its_own(programs, &staged)));
    }
    cases
}

fn of_the_host(programs: &Programs, staged: &Staged, mode: &str) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let fixture = Fixture::new(staged.uid)?;
    for kind in ["STREAM", "SEQPACKET"] {
        let path = fixture.outside().join(kind.to_lowercase());
        let listener = Listener::at(&path, kind)?;
        own(&path, staged.uid)?;
        let name = path.display().to_string().replace('/', "-");
        let nameless = Listener::without_file(&name, kind)?;
        for blocking in ["", "NONBLOCK"] {
            let text = format!("$P {} {blocking}; exit 3", listener.attempt());
            let ran = staged.run(programs, &fixture, mode, &text)?;
            problems.equal(&text, ran.answer()?.as_str(), "connect EACCES");
            let file = format!("@/outside/{}", kind.to_lowercase());
            let line = format!("connect connect {file} EACCES observer dsh-probe 1");
            ran.check_denials(&mut problems, &text, &[&line]);
            let text = format!("$P {} {blocking}; exit 3", nameless.attempt());
            let ran = staged.run(programs, &fixture, mode, &text)?;
            problems.equal(&text, ran.answer()?.as_str(), "connect EPERM");
            let told = ran.facts.denials.first().and_then(|denial| denial.address.clone());
            problems.contains("address", &told.unwrap_or_default(), &name);
            ran.check_shape(&mut problems, &text);
        }
        listener.check_unreached(&mut problems);
        nameless.check_unreached(&mut problems);
    }
    problems.verdict(&mode)
}

fn of_its_own(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let fixture = Fixture::new(staged.uid)?;
    let text = "for kind in STREAM SEQPACKET; do for blocking in '' NONBLOCK; do
            $P unix-own own own $kind $blocking; rm own
            $P unix-own own /proc/self/cwd/own $kind $blocking; rm own
        done; done";
    let ran = staged.run(programs, &fixture, "workspace-write", text)?;
    let id = staged.uid;
    let end = format!("getpeername ok: uid {id} gid {id}, connected to own");
    problems.equal("answers", ran.answers()?, vec![end; 8]);
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}
