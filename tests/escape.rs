//! The escape suite: every attack of the tables in `escape/attacks/`, on every confined rung, as
//! root and as an ordinary user. A probe makes the attempt inside the sandbox; a test passes when
//! the attempt met the errno that the table names **and** the host is as it was before: "it failed"
//! is no proof.
//!
//! `DSH_TABLE=FILE` writes a table of the results, `DSH_MUST_RUN=1` turns skips into failures.

mod support;

#[path = "escape/attempt.rs"]
mod attempt;
#[path = "escape/bystanders.rs"]
mod bystanders;
#[path = "escape/host.rs"]
mod host;
#[path = "escape/report.rs"]
mod report;
#[path = "escape/streams.rs"]
mod streams;
#[path = "escape/table.rs"]
mod table;
#[path = "escape/victim.rs"]
mod victim;

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use attempt::Case;
use report::Report;
use support::binaries::Binaries;
use support::persona::Persona;
use support::skip::skip;
use table::Rung;

/// What all cases share. The binaries are copied when the first case needs them: a listing needs
/// none.
#[derive(Default)]
struct Suite {
    binaries: OnceLock<Result<Binaries, String>>,
    report: Report,
}

fn main() -> ExitCode {
    if let Err(error) = streams::reserve_forgotten() {
        eprintln!("escape: cannot reserve descriptors: {error}");
        return ExitCode::FAILURE;
    }
    let suite = Arc::new(Suite::default());
    let trials = cases().map(|case| trial(case, Arc::clone(&suite))).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    if let Some(Err(error)) = Arc::into_inner(suite).map(|suite| suite.report.write()) {
        eprintln!("escape: cannot write the table: {error}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn cases() -> impl Iterator<Item = Case> {
    let everyone = [Persona::ROOT, Persona::ordinary()];
    let wheres = Rung::ALL.into_iter().flat_map(move |rung| everyone.map(|who| (rung, who)));
    table::load().into_iter().flat_map(move |attack| {
        let fits = move |(rung, persona)| {
            let expectation = attack.expectation(rung, persona)?.clone();
            Some(Case { attack: attack.clone(), rung, persona, expectation })
        };
        wheres.clone().filter_map(fits)
    })
}

fn trial(case: Case, suite: Arc<Suite>) -> Trial {
    let (rung, who) = (case.rung.as_str(), case.persona.label());
    let name = format!("escape::{}::{rung}::{who}", case.attack.name);
    Trial::ignorable_test(name, move || suite.run(&case))
}

impl Suite {
    fn run(&self, case: &Case) -> Result<Completion, Failed> {
        if let Some(reason) = case.obstacle() {
            self.report.add(case, "-", &format!("skipped: {reason}"));
            return skip(reason);
        }
        let copy = || {
            let dsh_run = Path::new(env!("CARGO_BIN_EXE_dsh-run"));
            Binaries::copy(dsh_run).map_err(|error| format!("no binaries to test: {error}"))
        };
        let binaries = self.binaries.get_or_init(copy).as_ref()?;
        let verdict =
            case.run(binaries).map_err(|error| format!("cannot make the attempt: {error}"))?;
        if verdict.problems.is_empty() {
            let result = if verdict.declared_gap { "declared gap" } else { "ok" };
            self.report.add(case, &verdict.errno, result);
            return Ok(Completion::Completed);
        }
        self.report.add(case, &verdict.errno, "FAILED");
        Err(verdict.problems.join("\n").into())
    }
}
