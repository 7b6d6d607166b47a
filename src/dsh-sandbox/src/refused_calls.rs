//! The system calls that a plan's filter refuses, for people to read.

use crate::plan::Plan;

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
#[must_use]
pub fn refused_calls(plan: &Plan) -> Vec<RefusedCalls> {
    let in_force = plan.rules.iter().flat_map(|rules| rules.in_force(&plan.situations));
    in_force
        .map(|rule| RefusedCalls {
            calls: rule.names(),
            errno: rule.errno.name().to_owned(),
            conditional: !rule.when.is_empty(),
            why: rule.why.clone(),
        })
        .collect()
}
