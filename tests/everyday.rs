//! The everyday suite: the work that a sandbox is for, with the tools that people have. Every row of
//! the tables in `everyday/rows/` is done on every rung it is meant for, as root and as an ordinary
//! user, in a workspace of its own. What works outside works inside; what the mode forbids fails
//! with the errno that the table names, and the host is as it was before.
//!
//! `DSH_TABLE=FILE` writes a table of the results, `DSH_MUST_RUN=1` turns skips into failures.

mod support;

#[path = "everyday/table.rs"]
mod table;
#[path = "everyday/toolchain.rs"]
mod toolchain;
#[path = "everyday/work.rs"]
mod work;

use std::process::ExitCode;
use std::sync::Arc;

use dsh_facts::SandboxMode;
use libtest_mimic::Completion;

use support::cases::{Case, Verdict};
use support::persona::Persona;
use support::report::Report;
use support::skip::skip;
use support::stage::Programs;
use work::{End, Work};

fn main() -> ExitCode {
    let report = Arc::new(Report::new(["work", "rung", "uid", "outcome", "result"]));
    let cases = all().map(|work| case(work, Arc::clone(&report))).collect();
    let conclusion = support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), cases);
    if let Err(error) = report.write() {
        eprintln!("everyday: cannot write the table: {error}");
        return ExitCode::FAILURE;
    }
    conclusion
}

/// Every row on every rung by every user that it has an expectation for.
fn all() -> impl Iterator<Item = Work> {
    let everyone = [Persona::ROOT, Persona::ordinary()];
    let wheres = SandboxMode::ALL.into_iter().flat_map(move |rung| everyone.map(|who| (rung, who)));
    table::load().into_iter().flat_map(move |row| {
        let fits = move |(rung, persona)| {
            let expectation = row.expectation(rung, persona)?.clone();
            Some(Work { row: row.clone(), rung, persona, expectation })
        };
        wheres.clone().filter_map(fits)
    })
}

fn case(work: Work, report: Arc<Report<5>>) -> Case {
    let name = format!("everyday::{}::{}::{}", work.row.name, work.rung, work.persona.label());
    Case::new(name, move |programs| conclude(&work, programs, &report))
}

fn conclude(work: &Work, programs: &Programs, report: &Report<5>) -> Verdict {
    let note = |result: &str| report.add(work.line(result));
    match work.run(programs) {
        Ok(End::Right) => {
            note("ok");
            Ok(Completion::Completed)
        }
        Ok(End::Wrong(problems)) => {
            note("FAILED");
            Err(problems.join("\n").into())
        }
        Ok(End::Impossible(reason)) => {
            note(&format!("skipped: {reason}"));
            if work.row.optional { Ok(Completion::ignored_with(reason)) } else { skip(reason) }
        }
        Err(error) => {
            note("FAILED");
            Err(format!("cannot do the work: {error}").into())
        }
    }
}
