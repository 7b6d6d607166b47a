//! Tests that run once for each persona.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use super::binaries::Binaries;
use super::caller::Caller;
use super::persona::Persona;
use super::skip;

/// Why a test ends before its end.
pub(crate) enum Stop {
    /// Something is wrong.
    Failed(Failed),
    /// This host cannot run it.
    Skipped(String),
}

impl<E: Display> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(Failed::from(error))
    }
}

/// What a test function returns; it panics or returns an error when something is wrong.
pub(crate) type Outcome = Result<(), Stop>;

/// A test, by its name.
pub(crate) type Test = (&'static str, fn(&Caller) -> Outcome);

/// Ends a test that this host cannot run.
pub(crate) fn skip<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skipped(reason.into()))
}

/// Lists test functions under their own names.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[crate::support::suite::Test] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use tests;

/// Runs every test of every module as root and as an ordinary user. Each gets a caller with directories of its own,
/// so they can run side by side.
pub(crate) fn run(dsh_run: &'static str, modules: &[(&str, &[Test])]) -> ExitCode {
    // Copied when the first test needs them: a listing needs none.
    let binaries: Arc<OnceLock<Result<Binaries, String>>> = Arc::default();
    let mut trials = Vec::new();
    for (module, tests) in modules {
        for &(name, test) in *tests {
            for persona in [Persona::ROOT, Persona::ordinary()] {
                let binaries = Arc::clone(&binaries);
                let name = format!("{module}::{name}::{}", persona.label());
                trials.push(Trial::ignorable_test(name, move || {
                    if let Some(reason) = persona.obstacle() {
                        return skip::skip(reason);
                    }
                    let copied = binaries.get_or_init(|| {
                        Binaries::copy(Path::new(dsh_run))
                            .map_err(|error| format!("no binaries to test: {error}"))
                    });
                    let caller = Caller::new(persona, copied.as_ref()?.dsh_run())?;
                    conclude(test(&caller))
                }));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test's outcome in the words of the harness.
pub(crate) fn conclude(outcome: Outcome) -> Result<Completion, Failed> {
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(Stop::Skipped(reason)) => skip::skip(reason),
        Err(Stop::Failed(failed)) => Err(failed),
    }
}
