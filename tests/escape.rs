//! The escape suite: every attack of the tables in `escape/attacks/`, on every confined rung, as
//! root and as an ordinary user. A probe makes the attempt inside the sandbox; a test passes when
//! the attempt met the errno that the table names **and** the host is as it was before: "it failed"
//! is no proof.
//!
//! `DSH_HOST=CLASS` says what the host at hand offers (`escape/classes.toml`; `ci/containers`),
//! `DSH_TABLE=FILE` writes a table of the results, `DSH_MUST_RUN=1` turns skips into failures.

mod support;

#[path = "escape/attempt.rs"]
mod attempt;
#[path = "escape/bystanders.rs"]
mod bystanders;
#[path = "escape/class.rs"]
mod class;
#[path = "escape/host.rs"]
mod host;
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
use class::Class;
use support::binaries::Binaries;
use support::persona::Persona;
use support::report::Report;
use support::skip::skip;
use table::Rung;

/// What all tests share. The binaries are copied when the first test needs them: a listing needs
/// none.
struct Suite {
    class: Class,
    binaries: OnceLock<Result<Binaries, String>>,
    report: Report<6>,
}

fn main() -> ExitCode {
    if let Err(error) = streams::reserve_forgotten() {
        eprintln!("escape: cannot reserve descriptors: {error}");
        return ExitCode::FAILURE;
    }
    let report = Report::new(["attack", "rung", "uid", "errno", "layer", "result"]);
    let (class, binaries) = (Class::of_this_host(), OnceLock::new());
    let suite = Arc::new(Suite { class, binaries, report });
    let classes = everyone().map(|persona| class_trial(persona, Arc::clone(&suite)));
    let attempts = cases(&suite.class).map(|case| trial(case, Arc::clone(&suite)));
    let trials = classes.into_iter().chain(attempts).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    if let Err(error) = suite.report.write() {
        eprintln!("escape: cannot write the table: {error}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn everyone() -> [Persona; 2] {
    [Persona::ROOT, Persona::ordinary()]
}

fn cases(class: &Class) -> impl Iterator<Item = Case> {
    let wheres = Rung::ALL.into_iter().flat_map(|rung| everyone().map(|who| (rung, who)));
    table::load().into_iter().flat_map(move |attack| {
        let fits = move |(rung, persona)| {
            let expectation = attack.expectation(rung, persona, class)?;
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

/// The host must be what the environment says, or every expectation would be another host's.
fn class_trial(persona: Persona, suite: Arc<Suite>) -> Trial {
    let name = format!("class::{}::{}", suite.class.name.as_str(), persona.label());
    Trial::ignorable_test(name, move || {
        if let Some(reason) = persona.obstacle() {
            return skip(reason);
        }
        match suite.class.check(persona, suite.binaries()?)? {
            None => Ok(Completion::Completed),
            Some(problem) => Err(problem.into()),
        }
    })
}

impl Suite {
    fn binaries(&self) -> Result<&Binaries, Failed> {
        let copy = || {
            let dsh_run = Path::new(env!("CARGO_BIN_EXE_dsh-run"));
            Binaries::copy(dsh_run).map_err(|error| format!("no binaries to test: {error}"))
        };
        self.binaries.get_or_init(copy).as_ref().map_err(Failed::from)
    }

    fn run(&self, case: &Case) -> Result<Completion, Failed> {
        if let Some(reason) = self.class.unable(&case.attack.needs()) {
            self.report.add(case.line("-", &format!("not applicable: {reason}")));
            return Ok(Completion::ignored_with(reason));
        }
        if let Some(reason) = case.obstacle() {
            self.report.add(case.line("-", &format!("skipped: {reason}")));
            return skip(reason);
        }
        let verdict = case
            .run(self.binaries()?)
            .map_err(|error| format!("cannot make the attempt: {error}"))?;
        let result = match (&case.attack.gap, verdict.declared_gap) {
            _ if !verdict.problems.is_empty() => "FAILED".to_owned(),
            (Some(effect), true) => format!("declared gap: {effect}"),
            _ => "ok".to_owned(),
        };
        self.report.add(case.line(&verdict.errno, &result));
        if verdict.problems.is_empty() {
            return Ok(Completion::Completed);
        }
        Err(verdict.problems.join("\n").into())
    }
}
