//! The denials of the facts against an oracle: random operations, made inside the sandbox and, on the
//! same trees, outside as the same user. What failed inside and succeeds outside was denied, and
//! nothing else.
//!
//! `DSH_ORACLE_SEED` draws other operations, `DSH_ORACLE_OPERATIONS` as many of each mode and user,
//! from the number `DSH_ORACLE_FIRST` on. A disagreement is printed with its number and its line of
//! the probe's script.

mod support;

#[path = "oracle/calls.rs"]
mod calls;
#[path = "oracle/changes.rs"]
mod changes;
#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/disk.rs"]
mod disk;
#[path = "oracle/draw.rs"]
mod draw;
#[path = "oracle/exceptions.rs"]
mod exceptions;
#[path = "oracle/ground.rs"]
mod ground;
#[path = "oracle/naming.rs"]
mod naming;
#[path = "oracle/run.rs"]
mod run;
#[path = "oracle/scene.rs"]
mod scene;
#[path = "oracle/script.rs"]
mod script;
#[path = "probe/src/spelled.rs"]
mod spelled;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use compare::Comparison;
use draw::draw;
use dsh_facts::SandboxMode;
use exceptions::Tally;
use ground::Ground;
use nix::mount::{MsFlags, mount};
use nix::unistd::geteuid;
use run::{Runner, make_desk};
use support::cases::{Case, Verdict};
use support::persona::Persona;
use support::private_mounts::with_private_mounts;
use support::skip::skip;
use support::stage::Programs;

/// Operations of one run: fewer than the denials that the facts list.
const BATCH: u64 = 900;
/// Disagreements that are printed.
const SHOWN: usize = 400;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for (salt, mode) in (0..).zip([SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite]) {
        // A user namespace shows user 65534 in place of others, and so hides what is only its own.
        let personas = [Persona::ROOT, Persona::ordinary(), Persona::of(1000)];
        for (second, persona) in (0..).zip(personas) {
            let name = format!("oracle::{mode}::{}", persona.label());
            let salt = 3 * salt + second;
            cases.push(Case::new(name, move |programs| agree(programs, persona, mode, salt)));
        }
    }
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), cases)
}

/// A number from the environment.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

fn agree(programs: &Programs, persona: Persona, mode: SandboxMode, salt: u64) -> Verdict {
    if let Some(reason) = persona.obstacle() {
        return skip(reason);
    }
    let directory = tempfile::Builder::new().prefix("dsh-oracle-").tempdir_in("/var/tmp")?;
    let base = directory.path().canonicalize()?;
    let report = if geteuid().is_root() {
        // In memory many small files are made faster by far.
        with_private_mounts(|| {
            mount(Some("none"), &base, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
            compare(programs, persona, mode, salt, &base)
        })?
    } else {
        compare(programs, persona, mode, salt, &base)?
    };
    eprintln!("{mode}, {}: {}", persona.label(), report.tally);
    let found = report.found;
    if found.is_empty() {
        return Ok(libtest_mimic::Completion::Completed);
    }
    let shown = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    Err(format!("{} disagreements:\n{shown}", found.len()).into())
}

/// What came of one mode and user.
#[derive(Default)]
struct Report {
    tally: Tally,
    found: Vec<String>,
}

fn compare(
    programs: &Programs,
    persona: Persona,
    mode: SandboxMode,
    salt: u64,
    base: &Path,
) -> io::Result<Report> {
    let desk = make_desk(base, persona)?;
    let ground = Ground::new(base.join("ground"));
    let runner = Runner { programs, persona, mode, ground: &ground, desk: &desk };
    let seed = number("DSH_ORACLE_SEED", 1) ^ (salt << 32);
    let first = number("DSH_ORACLE_FIRST", 0);
    let last = first + number("DSH_ORACLE_OPERATIONS", 2500);
    let mut report = Report::default();
    let mut next = first;
    while next < last {
        let numbers = next..last.min(next + BATCH);
        next = numbers.end;
        let draw = |number| draw(seed, number, &ground, persona.id(), geteuid().is_root());
        let drawn: Vec<_> = numbers.map(draw).collect();
        let both = runner.run(&drawn)?;
        let comparison = Comparison { ground: &ground, mode, drawn: &drawn, both: &both };
        report.found.extend(comparison.disagreements(&mut report.tally));
    }
    Ok(report)
}
