//! The rungs as files, embedded in the library.

use dsh_facts::{Network, Observe, SandboxMode};
use serde::Deserialize;

use crate::error::RequestError;
use crate::scratch_size::ScratchSize;
use crate::seccomp_rules::Rules;

/// One rung as its file in `sandbox-profiles/` states it; everything in it is a default but the mode
/// and the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rung {
    /// The rung.
    pub(crate) mode: SandboxMode,
    /// What it is, for people.
    pub(crate) description: String,
    /// The network that commands have unless the request says otherwise.
    pub(crate) network: Network,
    /// The size of the scratch.
    pub(crate) scratch_size: Option<ScratchSize>,
    /// The most processes and threads of one command.
    pub(crate) pids: Option<u32>,
    /// What is watched for denials unless the request says otherwise.
    pub(crate) observe: Option<Observe>,
    /// The file with the system calls that are refused.
    syscalls: Option<String>,
}

const READ_ONLY: &str = include_str!("../sandbox-profiles/read-only.toml");
const WORKSPACE_WRITE: &str = include_str!("../sandbox-profiles/workspace-write.toml");
const DANGER_FULL_ACCESS: &str = include_str!("../sandbox-profiles/danger-full-access.toml");
const SYSCALLS: &str = include_str!("../sandbox-profiles/syscalls.toml");

impl Rung {
    /// The rung of a mode.
    ///
    /// # Errors
    ///
    /// [`RequestError::BuiltIn`]: the build embeds a file that does not parse.
    pub(crate) fn of(mode: SandboxMode) -> Result<Self, RequestError> {
        let text = match mode {
            SandboxMode::ReadOnly => READ_ONLY,
            SandboxMode::WorkspaceWrite => WORKSPACE_WRITE,
            SandboxMode::DangerFullAccess => DANGER_FULL_ACCESS,
        };
        parse(mode.as_str(), text)
    }

    /// The system calls that the rung refuses; none for the widest.
    ///
    /// # Errors
    ///
    /// As [`Rung::of`].
    pub(crate) fn rules(&self) -> Result<Option<Rules>, RequestError> {
        match self.syscalls.as_deref() {
            None => Ok(None),
            Some("syscalls.toml") => parse("syscalls", SYSCALLS).map(Some),
            Some(_) => Err(RequestError::BuiltIn {
                name: self.mode.as_str(),
                message: "syscalls: the only table is syscalls.toml".to_owned(),
            }),
        }
    }
}

fn parse<T: for<'de> Deserialize<'de>>(name: &'static str, text: &str) -> Result<T, RequestError> {
    toml::from_str(text)
        .map_err(|error| RequestError::BuiltIn { name, message: error.message().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_has_a_file_that_names_it() {
        for mode in SandboxMode::ALL {
            let rung = Rung::of(mode).expect("the embedded file parses");
            assert_eq!(rung.mode, mode);
            let rules = rung.rules().expect("the embedded table parses");
            assert_eq!(rules.is_some(), mode.confines());
        }
    }
}
