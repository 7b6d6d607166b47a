//! What a person sees when dsh-run itself fails: one clear line, exit 125.

use std::path::PathBuf;

use dsh_facts::{ErrorCode, RunError};
use dsh_sandbox::{LayerError, ProfileError, SandboxError, run_error};
use nix::errno::Errno;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Not an error: text for standard output.
    #[error("{0}")]
    Help(String),
    #[error("{0}")]
    Usage(String),
    #[error("refusing to run with set-user-id or set-group-id privileges: remove the bits")]
    SetUserId,
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("{0}: that says nothing about the host: try again")]
    Probe(LayerError),
    #[error("{role} {}: {}: {remedy}", path.display(), describe(*errno))]
    File { role: &'static str, path: PathBuf, errno: Errno, remedy: &'static str },
    #[error("--facts-fd {number}: {}: name an open descriptor from 3 up that can be written", describe(*errno))]
    FactsDescriptor { number: i32, errno: Errno },
    #[error("{step}: {}", describe(*errno))]
    System { step: &'static str, errno: Errno },
}

impl Error {
    /// Says it, on standard output if it is no error.
    pub(crate) fn print(&self) {
        use std::io::Write;
        // A closed standard error leaves nobody to tell.
        let _ = match self {
            Self::Help(text) => write!(std::io::stdout(), "{text}"),
            _ => writeln!(std::io::stderr(), "dsh-run: {}", one_line(&self.to_string())),
        };
    }

    /// The error as the facts have it.
    pub(crate) fn fact(&self) -> RunError {
        let errno = match self {
            Self::Sandbox(error) => return run_error(error),
            Self::File { errno, .. }
            | Self::FactsDescriptor { errno, .. }
            | Self::System { errno, .. } => Some(format!("{errno:?}")),
            Self::Help(_)
            | Self::Usage(_)
            | Self::Profile(_)
            | Self::SetUserId
            | Self::Probe(_) => None,
        };
        RunError {
            code: ErrorCode::InvalidRequest,
            layer: None,
            step: None,
            errno,
            message: one_line(&self.to_string()),
            remedy: None,
        }
    }

    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Help(_) => 0,
            _ => 125,
        }
    }
}

/// Names a system call that failed.
pub(crate) fn system(step: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { step, errno }
}

/// The errno inside an I/O error.
pub(crate) fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// `Permission denied (EACCES)`.
pub(crate) fn describe(errno: Errno) -> String {
    format!("{} ({errno:?})", errno.desc())
}

/// A path in a message may hold anything; the message stays one line, and a terminal sees no
/// control character of it.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
