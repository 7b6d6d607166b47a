//! A directory that is known by more than its name.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A directory, known by more than its name: whoever opens it compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The canonical path. (An OsString: serde refuses a path that is not UTF-8.)
    pub path: OsString,
    /// Device of the directory.
    pub device: u64,
    /// Inode of the directory.
    pub inode: u64,
}

impl Root {
    /// The canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}
