//! The facts of one run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Denial, Enforcement, Layer, Network, Observe, SandboxMode};

/// The version of the shape. It only grows.
pub const VERSION: u32 = 1;

/// Everything dsh knows about one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Version of this shape: 1.
    pub version: u32,
    /// Whether the command ran.
    pub outcome: Outcome,
    /// Why it did not, or what failed while it ran; null when it ran to its end.
    pub error: Option<RunError>,
    /// The mode in force.
    pub mode: SandboxMode,
    /// The workspace, as text.
    pub workspace: String,
    /// The workspace's exact bytes, when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_base64: Option<String>,
    /// Every root that the command may write, as resolved, as text.
    #[serde(default)]
    pub writable: Vec<String>,
    /// The profile in use, as it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What the command could not read, as resolved, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// What of the writable roots it could not write, as resolved, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
    /// Hidden and protected paths, and writable roots of the profile, that did not exist, so that
    /// there was nothing to hide, protect or give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The network in force, which a host can make less than what was asked for.
    pub network: Network,
    /// How complete the enforcement is; null where nothing is confined or nothing was applied.
    pub enforcement: Option<Enforcement>,
    /// How the command ended; null when it did not run.
    pub exit: Option<Exit>,
    /// Whether the command failed and something was denied to it; null where nothing could be
    /// seen.
    pub denied: Option<bool>,
    /// Where `denied` comes from.
    pub denial_source: DenialSource,
    /// What was watched; null where nothing was.
    #[serde(default)]
    pub observe: Option<Observe>,
    /// What was denied, whether or not the command failed; the first of each kind first.
    #[serde(default)]
    pub denials: Vec<Denial>,
    /// Denials of further kinds than are listed.
    #[serde(default)]
    pub denials_dropped: u64,
    /// Names of the environment variables that were withheld from the command.
    pub env_dropped: Vec<String>,
    /// Host files that the caller handed to the command as standard output or error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stdio: Vec<StdioGrant>,
}

/// Whether a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It ran, or was to be executed and could not be found.
    Ran,
    /// It did not: `error` says why.
    Refused,
}

/// Kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The host cannot confine the command as the mode requires, or a layer failed.
    SandboxUnavailable,
    /// The request cannot be carried out as it stands.
    InvalidRequest,
    /// The enforcement would be partial and `full` was required.
    PartialEnforcement,
    /// The processes around the command ended without a report.
    RunnerFailed,
}

/// Why a command did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// The kind.
    pub code: ErrorCode,
    /// The layer that failed, when one did.
    pub layer: Option<Layer>,
    /// The step of it, such as `mount_setattr`.
    pub step: Option<String>,
    /// The errno, such as `EPERM`.
    pub errno: Option<String>,
    /// The one line that a person sees.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// Whether exec succeeded; false with code 126 or 127 when it did not.
    pub started: bool,
    /// The exit code; null when a signal ended it, or when nothing is known of its end.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// Whether our own timer was the first cause of the end.
    pub timed_out: bool,
    /// Whether the caller's signal was.
    pub aborted: bool,
}

/// How denials are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DenialSource {
    /// From the kernel, which told the observer what the command called.
    Observed,
    /// They are not.
    Unavailable,
}

/// A host file that the caller opened for writing and handed to the command: its contents and
/// metadata are the command's to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StdioGrant {
    /// 1 or 2.
    pub descriptor: i32,
    /// Its path when the run began, as text.
    pub path: String,
    /// Its exact bytes, when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
}

/// One line of the stream that `--facts-fd` carries. A stream without `exit` or `refused` means
/// that dsh-run itself was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The command is confined, and executed without waiting for this line to be read.
    Started {
        /// Version of this shape: 1.
        version: u32,
        /// The mode in force.
        mode: SandboxMode,
        /// The network in force.
        network: Network,
        /// How complete the enforcement is.
        enforcement: Option<Enforcement>,
    },
    /// Something was denied for the first time. The last line has the counts.
    Denial(Denial),
    /// The command has ended: everything known.
    Exit(Box<Facts>),
    /// The command did not run: everything known.
    Refused(Box<Facts>),
}
