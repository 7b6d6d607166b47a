//! What a caller asks for: one command, and how it is to be confined.

use std::ffi::OsString;
use std::path::PathBuf;

use dsh_facts::{Network, Observe, SandboxMode};

use crate::profile::Profile;
use crate::scratch_size::ScratchSize;

/// One command and its confinement, as asked for. Nothing is resolved or defaulted yet.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The rung; the profile's, or else `read-only`, when absent.
    pub mode: Option<SandboxMode>,
    /// A profile, which the rest of the request can only narrow.
    pub profile: Option<Profile>,
    /// The workspace; the current directory when absent.
    pub workspace: Option<PathBuf>,
    /// Extra writable roots, where the mode allows writing at all.
    pub writable: Vec<PathBuf>,
    /// What the command cannot read.
    pub hidden: Vec<PathBuf>,
    /// What of the writable roots it cannot write.
    pub protected: Vec<PathBuf>,
    /// Whether a writable root may be, or hold, the home directory.
    pub allow_home: bool,
    /// The network; the rung's own when absent.
    pub network: Option<Network>,
    /// Unix sockets that the command may connect to, besides those of its own.
    pub sockets: Vec<PathBuf>,
    /// What is watched for denials; the rung's own when absent.
    pub observe: Option<Observe>,
    /// The directory that the command starts in, by its name inside the sandbox; the current
    /// directory itself when absent.
    pub workdir: Option<PathBuf>,
    /// The most processes and threads of the command; the rung's own when absent.
    pub pids: Option<u32>,
    /// The size of the scratch; the rung's own when absent.
    pub scratch_size: Option<ScratchSize>,
    /// What the command's environment is made of.
    pub environment: EnvironmentRequest,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Whether the command becomes the foreground of the terminal on descriptor 0.
    pub foreground: bool,
    /// Whether gaps turn into a refusal.
    pub require_full: bool,
}

impl Request {
    /// The mode in force: `read-only` unless another is asked for, here or in the profile.
    #[must_use]
    pub fn mode(&self) -> SandboxMode {
        let of_profile = || self.profile.as_ref().map(|profile| profile.mode);
        self.mode.or_else(of_profile).unwrap_or(SandboxMode::ReadOnly)
    }
}

/// What a command's environment is made of.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentRequest {
    /// The caller's environment.
    pub inherited: Vec<(OsString, OsString)>,
    /// Whether to start from nothing instead.
    pub clear: bool,
    /// Names to keep although they look like credentials, or although the rest is cleared.
    pub pass: Vec<OsString>,
    /// Names to withhold although they look harmless.
    pub drop: Vec<OsString>,
    /// Variables to set, last.
    pub set: Vec<(OsString, OsString)>,
}
