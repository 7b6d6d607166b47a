//! The plan of a request against a slow and obvious model of what it must come to, in random trees
//! of directories, links and mounts; and for some of them, what a program in the sandbox can really
//! do with each file.
//!
//! `DSH_PLAN_SEED` makes other cases, `DSH_PLAN_CASES` more of them. A difference is printed with its
//! seed and number; `DSH_PLAN_FIRST` begins at a number.

mod support;

#[path = "plan_model/carve_outs.rs"]
mod carve_outs;
#[path = "plan_model/compare.rs"]
mod compare;
#[path = "plan_model/disk.rs"]
mod disk;
#[path = "plan_model/generate.rs"]
mod generate;
#[path = "plan_model/model.rs"]
mod model;
#[path = "plan_model/product.rs"]
mod product;
#[path = "plan_model/running.rs"]
mod running;
#[path = "plan_model/walk.rs"]
mod walk;
#[path = "plan_model/worker.rs"]
mod worker;
#[path = "plan_model/world.rs"]
mod world;

use std::process::{Command, ExitCode};

use support::caller::finish;
use support::cases::{Case, Verdict};
use support::persona::Persona;
use support::skip::skip;
use support::stage::Programs;
use worker::{Order, work};

/// The cases of each persona are dealt out to as many workers.
const PARTS: u64 = 8;

/// As the first word, it makes the program a worker.
const WORKER: &str = "--worker";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((WORKER, order)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        let done = Order::read(order).map(|order| work(&order));
        return match done {
            Some(Ok(true)) => ExitCode::SUCCESS,
            Some(Ok(false)) => ExitCode::FAILURE,
            failed => {
                println!("the worker fails: {failed:?}");
                ExitCode::FAILURE
            }
        };
    }
    let mut cases = Vec::new();
    for part in 0..PARTS {
        for persona in [Persona::ROOT, Persona::ordinary()] {
            let name = format!("plan_model::part{part}::{}", persona.label());
            cases.push(Case::new(name, move |programs| compare_plans(programs, persona, part)));
        }
    }
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), cases)
}

/// A number from the environment.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

fn compare_plans(programs: &Programs, persona: Persona, part: u64) -> Verdict {
    if let Some(reason) = persona.obstacle() {
        return skip(reason);
    }
    let directory = tempfile::Builder::new().prefix("dsh-plans-").tempdir_in("/var/tmp")?;
    persona.own(directory.path())?;
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let cases = number("DSH_PLAN_CASES", 2000) / PARTS;
    let order = Order {
        seed: number("DSH_PLAN_SEED", 1),
        first: number("DSH_PLAN_FIRST", 0) + part * cases,
        cases,
        runs: 8,
        directory: text(&directory.path().canonicalize()?),
        dsh_run: text(&programs.dsh_run()),
        dsh_probe: text(&programs.dsh_probe()),
    };
    // The file itself, which the persona could perhaps not reach by its name.
    let mut command = Command::new("/proc/self/exe");
    command.env("HOME", format!("{}/home", order.directory));
    command.arg(WORKER).args(order.words()).current_dir("/");
    persona.dress(&mut command);
    let ended = finish(&mut command)?;
    if !ended.status.success() {
        return Err(format!("{}{}", ended.stdout, ended.stderr).into());
    }
    eprintln!("seed {}, as {}: {}", order.seed, persona.label(), ended.stdout.trim_end());
    Ok(libtest_mimic::Completion::Completed)
}
