//! What a host offers and what each mode comes to on it: the shape of `dsh-run doctor --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Gap, Layer, Network, RunError, SandboxMode};

/// Everything that the doctor knows about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Version of this shape: 1.
    pub version: u32,
    /// The kernel's release.
    pub kernel: String,
    /// The user id of the caller.
    pub uid: u32,
    /// The kind of container that the mount table looks like. A hint for people: nothing is decided
    /// by it.
    pub container: Option<String>,
    /// What was tried, each by doing it.
    pub steps: Vec<StepReport>,
    /// What each mode comes to, narrowest first.
    pub modes: Vec<ModeReport>,
}

/// One step of confinement and the host's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// The layer that the step makes.
    pub step: Layer,
    /// Whether it succeeded.
    pub offered: bool,
    /// Landlock's ABI version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<u32>,
    /// The errno with which the host refused, such as `EPERM`.
    pub errno: Option<String>,
    /// What was refused: a system call, or what it is for.
    pub call: Option<String>,
    /// The step that this one builds on and that is refused already.
    pub needs: Option<Layer>,
    /// Why it is refused, each with its remedy.
    pub causes: Vec<Cause>,
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What refuses it. Without `tell`, the kernel's state shows that this is so.
    pub cause: String,
    /// What removes the cause.
    pub remedy: String,
    /// How to tell whether this is the cause, where the kernel's state does not.
    pub tell: Option<String>,
}

impl Cause {
    /// The remedies in one line: every one of the causes that are known; where none is, one of
    /// those that are possible.
    #[must_use]
    pub fn remedies(causes: &[Self]) -> String {
        let of = |known: bool, between: &str| {
            let those = causes.iter().filter(|cause| cause.tell.is_none() == known);
            those.map(|cause| cause.remedy.as_str()).collect::<Vec<_>>().join(between)
        };
        let known = of(true, "; and ");
        if known.is_empty() { of(false, "; or ") } else { known }
    }
}

/// How far a mode can be had on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModeLevel {
    /// Commands run, without gaps.
    Full,
    /// Commands run, with gaps.
    Partial,
    /// Commands do not run.
    Refused,
    /// Commands run, and nothing is confined.
    Unconfined,
}

/// What a mode comes to on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModeReport {
    /// The mode.
    pub mode: SandboxMode,
    /// How far it can be had.
    pub level: ModeLevel,
    /// The network in force, which a host can make less than the mode's own; null where commands
    /// do not run.
    pub network: Option<Network>,
    /// What the mode promises; empty where nothing is confined.
    pub effects: Vec<EffectReport>,
    /// The effects that nothing governs, as the facts of a run state them.
    pub gaps: Vec<Gap>,
    /// Why commands do not run.
    pub error: Option<RunError>,
}

/// One effect that a mode promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectReport {
    /// Its name, such as `unix_sockets`.
    pub effect: String,
    /// The layers that govern it, and `host` where the host does so by itself. Empty exactly when
    /// there is a gap.
    pub governed_by: Vec<String>,
    /// The step that would govern it.
    pub needs: Option<Layer>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(remedy: &str, tell: Option<&str>) -> Cause {
        Cause { cause: "x".into(), remedy: remedy.into(), tell: tell.map(Into::into) }
    }

    #[test]
    fn known_causes_are_all_to_be_removed_and_of_possible_ones_one() {
        let (a, b, c) = (cause("a", None), cause("b", None), cause("c", Some("look")));
        assert_eq!(Cause::remedies(&[a, c.clone(), b]), "a; and b");
        assert_eq!(Cause::remedies(&[c, cause("d", Some("look"))]), "c; or d");
    }
}
