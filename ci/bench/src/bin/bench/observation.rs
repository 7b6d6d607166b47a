//! What observation costs: real work in `workspace-write` at its default level, beside the same work
//! in the same sandbox with observation off, on disk, in alternating order.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::Result;
use crate::args::{Args, beside};
use crate::scratch::Scratch;
use crate::stats::{Summary, paired_ratio};

/// Calls per round of the two loops of single calls.
const CALLS: u32 = 100_000;
/// The most that one trapped call may add, in microseconds.
const TRAPPED_AT_MOST: f64 = 12.0;

/// One kind of work.
struct Work {
    name: &'static str,
    command: Vec<String>,
    /// What is removed from the workspace before each run.
    made: &'static str,
    at_most: f64,
}

#[derive(Serialize)]
pub(crate) struct Observation {
    rounds: u32,
    pairs: Vec<Pair>,
    /// What one trapped call adds, in microseconds: the median over the rounds.
    trapped_call: f64,
    trapped_call_at_most: f64,
}

#[derive(Serialize)]
struct Pair {
    name: &'static str,
    observed: Summary,
    unobserved: Summary,
    ratio: f64,
    at_most: f64,
    met: bool,
}

/// Measures all of it.
pub(crate) fn measure(args: &Args, scratch: &Scratch) -> Result<Observation> {
    let workspace = scratch.workspace("work", 0)?;
    let source = clone_source(scratch)?;
    let archive = archive(scratch)?;
    let vendored = vendored(scratch)?;
    let calls = beside("calls")?.to_string_lossy().into_owned();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let build = format!(
        "cd {} && CARGO_TARGET_DIR={}/target cargo build --quiet --offline -p dsh-run",
        text(&vendored),
        text(&workspace)
    );
    let count = CALLS.to_string();
    let works = [
        Work {
            name: "git clone, 5,000 files",
            // Without --no-local git would link the objects, and only the checkout would be left.
            command: of(&["git", "clone", "--quiet", "--no-local", &text(&source), "clone"]),
            made: "clone",
            at_most: 1.5,
        },
        Work {
            name: "tar x, 20,000 files",
            command: of(&["tar", "xf", &text(&archive)]),
            made: "many",
            at_most: 2.0,
        },
        Work {
            name: "cargo build, vendored",
            command: of(&["sh", "-c", &build]),
            made: "target",
            at_most: 1.01,
        },
        Work {
            name: "find / -type f | wc -l",
            command: of(&["sh", "-c", "find / -xdev -type f 2>/dev/null | wc -l"]),
            made: "nothing",
            at_most: 1.01,
        },
        Work {
            name: "100,000 opens to read",
            command: of(&[&calls, "read", "/etc/passwd", &count]),
            made: "nothing",
            at_most: 1.02,
        },
    ];
    let rounds = args.rounds.get();
    let mut pairs = Vec::new();
    for work in &works {
        let (observed, unobserved) = times(args, &workspace, work, rounds)?;
        let ratio = paired_ratio(&observed, &unobserved);
        pairs.push(Pair {
            name: work.name,
            observed: Summary::of(&observed),
            unobserved: Summary::of(&unobserved),
            ratio,
            at_most: work.at_most,
            met: ratio <= work.at_most,
        });
    }
    let trapped = Work {
        name: "opens to write",
        command: of(&[&calls, "write", "file", &count]),
        made: "file",
        at_most: 0.0,
    };
    let (observed, unobserved) = times(args, &workspace, &trapped, rounds)?;
    let added: Vec<f64> =
        observed.iter().zip(&unobserved).map(|(with, without)| with - without).collect();
    Ok(Observation {
        rounds,
        pairs,
        trapped_call: Summary::of(&added).median / f64::from(CALLS),
        trapped_call_at_most: TRAPPED_AT_MOST,
    })
}

/// Times with and without, in microseconds; the n-th of both were taken in the n-th round.
fn times(args: &Args, workspace: &Path, work: &Work, rounds: u32) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut observed, mut unobserved) = (Vec::new(), Vec::new());
    // The first round fills the caches.
    for round in 0..=rounds {
        let order = if round % 2 == 0 { [true, false] } else { [false, true] };
        for observe in order {
            let time = run(args, workspace, work, observe)?;
            if round > 0 {
                if observe { &mut observed } else { &mut unobserved }.push(time);
            }
        }
    }
    Ok((observed, unobserved))
}

fn run(args: &Args, workspace: &Path, work: &Work, observe: bool) -> Result<f64> {
    let made = workspace.join(work.made);
    if made.is_dir() {
        fs::remove_dir_all(&made)?;
    }
    // What the run before left to be written is not this one's.
    checked(Command::new("sync").arg("-f").arg(workspace))?;
    let mut command = Command::new(args.dsh_run()?);
    command.args(["--mode", "workspace-write", "--workspace"]).arg(workspace);
    if !observe {
        command.args(["--observe", "off"]);
    }
    command.arg("--").args(&work.command).current_dir(workspace);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    checked(&mut command).map_err(|error| format!("{}: {error}", work.name))?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

fn checked(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// A repository of 5,000 files whose contents do not compress.
fn clone_source(scratch: &Scratch) -> Result<PathBuf> {
    let source = scratch.path().join("source");
    fs::create_dir(&source)?;
    let mut noise = 0x9E37_79B9_u32;
    for file in 0..5_000 {
        let directory = source.join(format!("d{}/e{}", file % 50, file % 7));
        fs::create_dir_all(&directory)?;
        let words: Vec<String> = (0..200)
            .map(|_| {
                noise ^= noise << 13;
                noise ^= noise >> 17;
                noise ^= noise << 5;
                format!("{noise:08x}")
            })
            .collect();
        fs::write(directory.join(format!("f{file}")), words.join(" "))?;
    }
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        checked(Command::new("git").args(who).arg("-C").arg(&source).args(arguments))
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "files"])?;
    Ok(source)
}

/// An archive of 20,000 small files.
fn archive(scratch: &Scratch) -> Result<PathBuf> {
    let many = scratch.path().join("many");
    for file in 0..20_000 {
        let directory = many.join(format!("d{}", file % 200));
        if file < 200 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{file}")), [b'x'; 500])?;
    }
    let archive = scratch.path().join("many.tar");
    checked(Command::new("tar").arg("cf").arg(&archive).arg("-C").arg(scratch.path()).arg("many"))?;
    fs::remove_dir_all(&many)?;
    Ok(archive)
}

/// The sources of this very project, with all that they depend on beside them.
fn vendored(scratch: &Scratch) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = scratch.path().join("vendored");
    checked(Command::new("git").args(["clone", "--quiet"]).arg(&root).arg(&copy))?;
    let vendor = Command::new("cargo")
        .args(["vendor", "--quiet", "--locked"])
        .current_dir(&copy)
        .stderr(Stdio::null())
        .output()?;
    if !vendor.status.success() {
        return Err("cargo vendor failed: it needs the registry, or its cache".into());
    }
    fs::create_dir_all(copy.join(".cargo"))?;
    fs::write(copy.join(".cargo/config.toml"), vendor.stdout)?;
    Ok(copy)
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.rounds;
        writeln!(f, "workspace-write, observed and not, ms, {rounds} alternating rounds")?;
        writeln!(f, "  {:<24} {:>9} {:>9} {:>8}", "", "observed", "off", "ratio")?;
        for Pair { name, observed, unobserved, ratio, at_most, met } in &self.pairs {
            let (with, without) = (observed.median / 1e3, unobserved.median / 1e3);
            let met = if *met { "met" } else { "missed" };
            writeln!(
                f,
                "  {name:<24} {with:>9.0} {without:>9.0} {ratio:>8.3}  (≤ {at_most:.2}) {met}"
            )?;
        }
        let met = if self.trapped_call <= self.trapped_call_at_most { "met" } else { "missed" };
        let (added, most) = (self.trapped_call, self.trapped_call_at_most);
        writeln!(f, "  a trapped call adds {added:.1} µs  (≤ {most:.0}) {met}")
    }
}
