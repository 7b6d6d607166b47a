//! The system calls that a plan's filter refuses, for people to read.

use crate::error::SandboxError;
use crate::plan::Plan;
use crate::profile::Profile;

/// One line of the table of refused system calls, as it holds in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCalls {
    /// Kernel names.
    pub calls: Vec<String>,
    /// The errno that answers, such as `EPERM`.
    pub errno: String,
    /// Whether only some arguments are refused.
    pub conditional: bool,
    /// The reason.
    pub why: String,
}

/// The system calls that the filter of a plan refuses.
///
/// # Errors
///
/// [`SandboxError::Request`] when the built-in table does not parse.
pub fn refused_calls(plan: &Plan) -> Result<Vec<RefusedCalls>, SandboxError> {
    let Some(rules) = Profile::of(plan.mode)?.rules()? else { return Ok(Vec::new()) };
    Ok(rules
        .in_force(&plan.situations)
        .map(|rule| RefusedCalls {
            calls: rule.names(),
            errno: rule.errno.name().to_owned(),
            conditional: !rule.when.is_empty(),
            why: rule.why.clone(),
        })
        .collect())
}
