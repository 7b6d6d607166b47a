//! Denials on their way from the observer, and how they end up in the facts.

use std::ffi::OsString;

use dsh_facts::{Access, Denial, Layer, base64_if_not_utf8, text};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::error::errno_name;

/// One denial, as it crosses process borders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Denied {
    /// What was refused.
    pub what: Refused,
    /// The name of the program that tried first.
    pub program: OsString,
    /// Its pid, as the command sees it.
    pub pid: i32,
    /// What would allow it.
    pub remedy: Option<String>,
}

/// What was refused: denials that are equal in this are counted as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refused {
    /// The operation.
    pub operation: String,
    /// What for.
    pub access: Option<Access>,
    /// The file or socket.
    pub path: Option<OsString>,
    /// The address or kind of a socket without a path.
    pub address: Option<String>,
    /// The errno.
    pub errno: i32,
    /// The layer.
    pub layer: Layer,
}

impl From<Denied> for Denial {
    fn from(denied: Denied) -> Self {
        let Denied { what, program, pid, remedy } = denied;
        Self {
            operation: what.operation,
            access: what.access,
            path: what.path.as_ref().map(text),
            path_base64: what.path.as_ref().and_then(base64_if_not_utf8),
            address: what.address,
            errno: errno_name(Errno::from_raw(what.errno)),
            layer: what.layer,
            program: text(program),
            pid,
            count: 1,
            remedy,
        }
    }
}

/// The denials of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// Each kind once, the first first.
    pub listed: Vec<Denial>,
    /// Denials of further kinds.
    pub dropped: u64,
}

impl Denials {
    /// Adds one that was told for the first time.
    pub(crate) fn add(&mut self, denied: Denied) {
        self.listed.push(denied.into());
    }

    /// Puts in how often each came.
    pub(crate) fn count(&mut self, counts: &[u64], dropped: u64) {
        for (denial, count) in self.listed.iter_mut().zip(counts) {
            denial.count = *count;
        }
        self.dropped = dropped;
    }
}
