//! The rungs of the ladder.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a command is confined. The order, narrowest first, is contract: compare with `<`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Writes nothing of the host.
    ReadOnly,
    /// Writes the workspace and the extra writable roots.
    WorkspaceWrite,
    /// No confinement at all.
    DangerFullAccess,
}

impl SandboxMode {
    /// `SANDBOX_MODES`: every mode, narrowest first.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess];

    /// The mode's name, as people and profiles write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }

    /// Whether commands of this mode are confined at all.
    #[must_use]
    pub fn confines(self) -> bool {
        self < Self::DangerFullAccess
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SandboxMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| UnknownMode { name: name.to_owned() })
    }
}

/// A name that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode '{name}': use read-only, workspace-write or danger-full-access")]
pub struct UnknownMode {
    /// What was given.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_ladder() {
        assert!(SandboxMode::ALL.is_sorted());
        assert!(SandboxMode::ReadOnly < SandboxMode::WorkspaceWrite);
        assert!(SandboxMode::WorkspaceWrite < SandboxMode::DangerFullAccess);
    }

    #[test]
    fn a_name_reads_back_and_is_the_one_on_the_wire() {
        for mode in SandboxMode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            let wire = serde_json::to_string(&mode).expect("a mode is a string");
            assert_eq!(wire, format!("\"{mode}\""));
        }
    }

    #[test]
    fn an_unknown_name_is_named_in_the_error() {
        let error = "Read-Only".parse::<SandboxMode>().expect_err("names are exact");
        assert!(error.to_string().contains("'Read-Only'"));
    }
}
