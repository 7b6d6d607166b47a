//! Tests that cannot run here.

use libtest_mimic::{Completion, Failed};

/// Ends a test that this host cannot run: with its reason, and as a failure where the environment
/// says that everything must run (`DSH_MUST_RUN=1`, as in CI).
pub(crate) fn skip(reason: impl Into<String>) -> Result<Completion, Failed> {
    let reason = reason.into();
    if std::env::var_os("DSH_MUST_RUN").is_some_and(|value| value == "1") {
        return Err(format!("must run, but: {reason}").into());
    }
    Ok(Completion::ignored_with(reason))
}
