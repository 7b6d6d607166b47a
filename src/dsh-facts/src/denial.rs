//! What was denied to a command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Layer;

/// The most distinct denials that the facts list; what comes after them is counted.
pub const DENIALS_MAX: usize = 1000;

/// One thing that a command tried, that this sandbox refused, and that the command's own rights
/// would have allowed without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// What was tried, by the name of the system call without its variants: `open`, `mkdir`,
    /// `unlink`, `rename`, `connect`, `socket`, `mount` …
    pub operation: String,
    /// What for; null where the call itself is refused.
    pub access: Option<Access>,
    /// The file, directory or socket, absolute and without symbolic links where it could be
    /// resolved, as text.
    pub path: Option<String>,
    /// Its exact bytes, when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// The address or the kind of a socket that has no path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The errno that the command got, such as `EROFS`.
    pub errno: String,
    /// The layer that refused.
    pub layer: Layer,
    /// The name of the program that tried first (proc_pid_comm(5)), as text.
    pub program: String,
    /// Its pid as the command itself sees it.
    pub pid: i32,
    /// How often.
    pub count: u64,
    /// The least under which it would have been allowed; null where no setting allows it.
    pub remedy: Option<String>,
}

/// What a file or socket was wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Access {
    /// To change its contents, its metadata, or what is in a directory.
    Write,
    /// To talk to who listens there.
    Connect,
}

impl Access {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Connect => "connect",
        }
    }
}
