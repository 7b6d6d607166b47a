//! What a caller asks for: one command, and how it is to be confined.

use std::ffi::OsString;
use std::path::PathBuf;

use dsh_facts::{Network, SandboxMode};

/// One command and its confinement, as asked for. Nothing is resolved or defaulted yet.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The rung.
    pub mode: Option<SandboxMode>,
    /// The workspace; the current directory when absent.
    pub workspace: Option<PathBuf>,
    /// Extra writable roots, where the mode allows writing at all.
    pub writable: Vec<PathBuf>,
    /// Whether a writable root may be, or hold, the home directory.
    pub allow_home: bool,
    /// The network; the rung's own when absent.
    pub network: Option<Network>,
    /// The directory that the command starts in, by its name inside the sandbox; the current
    /// directory itself when absent.
    pub workdir: Option<PathBuf>,
    /// The most processes and threads of the command; the rung's own when absent.
    pub pids: Option<u32>,
    /// The size of the scratch in bytes; the rung's own when absent.
    pub scratch_size: Option<u64>,
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
    /// The mode in force: `read-only` unless another is asked for.
    #[must_use]
    pub fn mode(&self) -> SandboxMode {
        self.mode.unwrap_or(SandboxMode::ReadOnly)
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
    /// Variables to set, last.
    pub set: Vec<(OsString, OsString)>,
}
