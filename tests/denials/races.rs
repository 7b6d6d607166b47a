//! A second thread rewrites a path, or moves what it leads to, between the moment at which the
//! observer looks at it and the moment at which the kernel does. Whatever the facts say then, nothing
//! outside is written.

use std::fs;
use std::os::unix::fs::symlink;

use crate::outside::Outside;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::fixture::{Fixture, own};
use crate::support::observed::{Observed, attempt};
use crate::support::problems::Problems;
use crate::support::rounds::rounds;
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;
use crate::support::stage::Programs;
use crate::support::staged::{STAGES, Staged};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("races::open", open);
    for staged in STAGES {
        let name = format!("races::metadata::{}", staged.name);
        cases.push(Case::new(name, move |programs| metadata(programs, &staged)));
        let name = format!("races::directory::{}", staged.name);
        cases.push(Case::new(name, move |programs| directory(programs, &staged)));
    }
    cases
}

/// Two names of one length.
fn of_one_length(one: &str, other: &str) -> [String; 2] {
    let length = one.len().max(other.len());
    [one, other].map(|path| format!("{}{path}", "/".repeat(length - path.len())))
}

fn open(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let shown = |name: &str| caller.path(name).display().to_string();
    let own = if mode == "read-only" { "/tmp/file".to_owned() } else { shown("workspace/file") };
    let [own, hosts] = of_one_length(&own, &shown("outside/file"));
    let text = format!("race-open {own} {hosts} {}", rounds());
    let ran = Observed::run_long(caller, &["--mode", mode], attempt(caller, &text))?;
    let answer = ran.answer()?;
    for end in [" ok", " EROFS"] {
        problems.check(answer.contains(end), || format!("no race: {answer}"));
    }
    outside.check(&mut problems)?;
    problems.verdict(&answer)
}

/// A file in the workspace and one outside, both of the caller's.
fn files(fixture: &Fixture, uid: u32) -> std::io::Result<()> {
    let inner = fixture.workspace().join("file");
    fs::write(&inner, "")?;
    own(&inner, uid)
}

/// Where the observer itself changes metadata, it changes those of what it looked at.
fn metadata(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(staged.uid)?;
    files(&fixture, staged.uid)?;
    let before = Snapshot::of(&fixture.outside())?;
    let inner = fixture.workspace().join("file").display().to_string();
    let [inner, outer] = of_one_length(&inner, &fixture.file().display().to_string());
    let text = format!("$P race-chmod {inner} {outer} {}", rounds());
    let ran = staged.run_long(programs, &fixture, &text)?;
    let mut problems = Problems::default();
    for end in [" ok", " EPERM"] {
        problems.contains("a race", &ran.stdout, end);
    }
    let changes = Snapshot::of(&fixture.outside())?.changes_since(&before);
    problems.equal("changes of the host", changes, Vec::new());
    problems.verdict(&ran)
}

/// A directory of the workspace is now itself, now a link to one outside.
fn directory(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(staged.uid)?;
    let inner = fixture.workspace().join("inner");
    fs::create_dir(&inner)?;
    fs::write(inner.join("file"), "")?;
    symlink(fixture.outside(), fixture.workspace().join("link"))?;
    for name in ["inner", "inner/file"] {
        own(&fixture.workspace().join(name), staged.uid)?;
    }
    let before = Snapshot::of(&fixture.outside())?;
    // The second thread's renames are looked at too.
    let text = format!("$P race-directory inner link file {}", rounds() / 10);
    let ran = staged.run_long(programs, &fixture, &text)?;
    let mut problems = Problems::default();
    for end in [" ok", " EPERM", " EACCES"] {
        problems.contains("a race", &ran.stdout, end);
    }
    let changes = Snapshot::of(&fixture.outside())?.changes_since(&before);
    problems.equal("changes of the host", changes, Vec::new());
    problems.verdict(&ran)
}
