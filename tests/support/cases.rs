//! Tests that share the programs under test.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use super::caller::Caller;
use super::observed::CONFINED;
use super::persona::Persona;
use super::skip::skip;
use super::stage::Programs;

/// How a test ends.
pub(crate) type Verdict = Result<Completion, Failed>;

/// One test.
pub(crate) struct Case {
    name: String,
    body: Box<dyn FnOnce(&Programs) -> Verdict + Send>,
}

impl Case {
    /// A test with its name.
    pub(crate) fn new(
        name: impl Into<String>,
        body: impl FnOnce(&Programs) -> Verdict + Send + 'static,
    ) -> Self {
        Self { name: name.into(), body: Box::new(body) }
    }
}

/// A test for one user, with directories of its own.
pub(crate) fn for_user<T>(name: &str, persona: Persona, test: T) -> Case
where
    T: Fn(&Caller) -> Verdict + Send + 'static,
{
    Case::new(format!("{name}::{}", persona.label()), move |programs| match persona.obstacle() {
        Some(reason) => skip(reason),
        None => test(&Caller::new(persona, programs.dsh_run())?),
    })
}

/// The same for root and for an ordinary user.
pub(crate) fn for_each_user<T>(name: &str, test: T) -> [Case; 2]
where
    T: Fn(&Caller) -> Verdict + Clone + Send + 'static,
{
    [Persona::ROOT, Persona::ordinary()].map(|persona| for_user(name, persona, test.clone()))
}

/// The same in each confined rung.
pub(crate) fn for_each_rung(name: &str, test: fn(&Caller, &str) -> Verdict) -> Vec<Case> {
    let of_rung = |mode: &'static str| {
        for_each_user(&format!("{name}::{mode}"), move |caller| test(caller, mode))
    };
    CONFINED.into_iter().flat_map(of_rung).collect()
}

/// Runs the tests side by side. The programs are prepared when the first test needs them: a listing
/// needs none.
pub(crate) fn run(dsh_run: &'static str, cases: Vec<Case>) -> ExitCode {
    let programs: Arc<OnceLock<Result<Programs, String>>> = Arc::default();
    let trial = |case: Case| {
        let programs = Arc::clone(&programs);
        Trial::ignorable_test(case.name, move || {
            let prepared = programs.get_or_init(|| {
                Programs::prepare(Path::new(dsh_run))
                    .map_err(|error| format!("no programs to test: {error}"))
            });
            (case.body)(prepared.as_ref()?)
        })
    };
    let trials = cases.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
