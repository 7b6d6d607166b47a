//! Where a command has no mounts of its own: Landlock refuses, and says `EACCES`.

use std::fs;

use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{Fixture, own};
use crate::support::observed::CONFINED;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;
use crate::support::stage::Programs;
use crate::support::staged::{STAGES, Staged};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for staged in STAGES {
        for mode in CONFINED {
            let name = format!("without_mounts::each::{mode}::{}", staged.name);
            cases.push(Case::new(name, move |programs| each(programs, &staged, mode)));
        }
    }
    cases
}

/// An attempt, its errno, and the denial if there is one.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    ("openat @/outside/new WRONLY|CREAT 0644", "EACCES", "open write @/outside/new"),
    ("openat @/outside/file RDWR", "EACCES", "open write @/outside/file"),
    ("openat @/outside/file RDONLY|TRUNC", "EACCES", "open write @/outside/file"),
    ("truncate @/outside/file", "EACCES", "truncate write @/outside/file"),
    ("mkdir @/outside/new 0755", "EACCES", "mkdir write @/outside/new"),
    ("mknodat @/outside/new fifo 0644", "EACCES", "mknod write @/outside/new"),
    ("symlink target @/outside/new", "EACCES", "symlink write @/outside/new"),
    ("unlink @/outside/file", "EACCES", "unlink write @/outside/file"),
    ("rmdir @/outside/empty", "EACCES", "rmdir write @/outside/empty"),
    ("rename @/outside/file @/outside/new", "EACCES", "rename write @/outside/file"),
    ("bind-path @/outside/new", "EACCES", "bind write @/outside/new"),
    ("unlink @/outside/missing", "ENOENT", ""),
    ("mkdir @/outside/empty 0755", "EEXIST", ""),
    ("openat @/outside/file WRONLY|CREAT|EXCL 0644", "EEXIST", ""),
    ("openat @/outside/file RDONLY", "ok", ""),
];

fn each(programs: &Programs, staged: &Staged, mode: &str) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let fixture = Fixture::new(staged.uid)?;
    let empty = fixture.outside().join("empty");
    fs::create_dir(&empty)?;
    own(&empty, staged.uid)?;
    let before = Snapshot::of(&fixture.outside())?;
    for (text, errno, denial) in ATTEMPTS {
        let words = format!("$P {}", text.replace("@/", "$T/").replace('|', "\\|"));
        let ran = staged.run(programs, &fixture, mode, &words)?;
        let answer = ran.answer()?;
        let got = answer.split(' ').nth(1).unwrap_or_default().trim_end_matches(':');
        problems.equal(text, got, errno);
        let line = format!("{denial} EACCES landlock dsh-probe 1");
        let line = [line.as_str()];
        ran.check_denials(&mut problems, text, if denial.is_empty() { &[] } else { &line });
    }
    let changes = Snapshot::of(&fixture.outside())?.changes_since(&before);
    problems.equal("changes of the host", changes, Vec::new());
    problems.verdict(&mode)
}
