//! Profiles: the rungs as files, embedded in the library.

use dsh_facts::{Network, SandboxMode};
use serde::Deserialize;

use crate::error::RequestError;
use crate::seccomp_rules::Rules;

/// One rung as its file in `sandbox-profiles/` states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// The rung.
    pub(crate) mode: SandboxMode,
    /// The network that commands have unless the request says otherwise.
    pub(crate) network: Network,
    /// tmpfs(5) `size` of the scratch: bytes with a suffix, or a share of the memory.
    pub(crate) scratch_size: Option<String>,
    /// The most processes and threads of one command.
    pub(crate) pids: Option<u32>,
    /// The file with the system calls that are refused.
    syscalls: Option<String>,
}

const READ_ONLY: &str = include_str!("../sandbox-profiles/read-only.toml");
const WORKSPACE_WRITE: &str = include_str!("../sandbox-profiles/workspace-write.toml");
const DANGER_FULL_ACCESS: &str = include_str!("../sandbox-profiles/danger-full-access.toml");
const SYSCALLS: &str = include_str!("../sandbox-profiles/syscalls.toml");

impl Profile {
    /// The built-in profile of a rung.
    ///
    /// # Errors
    ///
    /// [`RequestError::Profile`]: the build embeds a file that does not parse.
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
    /// As [`Profile::of`].
    pub(crate) fn rules(&self) -> Result<Option<Rules>, RequestError> {
        match self.syscalls.as_deref() {
            None => Ok(None),
            Some("syscalls.toml") => parse("syscalls", SYSCALLS).map(Some),
            Some(_) => Err(RequestError::Profile {
                name: self.mode.as_str(),
                message: "syscalls: the only table is syscalls.toml".to_owned(),
            }),
        }
    }
}

fn parse<T: for<'de> Deserialize<'de>>(name: &'static str, text: &str) -> Result<T, RequestError> {
    toml::from_str(text)
        .map_err(|error| RequestError::Profile { name, message: error.message().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_has_a_file_that_names_it() {
        for mode in SandboxMode::ALL {
            let profile = Profile::of(mode).expect("the embedded file parses");
            assert_eq!(profile.mode, mode);
            let rules = profile.rules().expect("the embedded table parses");
            assert_eq!(rules.is_some(), mode.confines());
        }
    }
}
