//! Where everything lies: a workspace, a second writable root, and a part of the host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A part of the ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Work,
    Host,
    Second,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Work, Self::Host, Self::Second];

    fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Host => "host",
            Self::Second => "second",
        }
    }
}

/// A directory with the parts in it.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    base: PathBuf,
}

impl Ground {
    /// In this directory, which is absolute and without links.
    pub(crate) fn new(base: PathBuf) -> Self {
        Self { base }
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn part(&self, part: Part) -> PathBuf {
        self.base.join(part.name())
    }

    /// The tree of an operation in a part. The directory above it is the operation's own too: a
    /// way about can lead there.
    pub(crate) fn tree(&self, part: Part, number: u64) -> Vec<u8> {
        let tree = self.part(part).join(format!("{number:05}/t"));
        tree.into_os_string().into_encoded_bytes()
    }

    /// The part in which a path lies.
    pub(crate) fn part_of(&self, path: &[u8]) -> Option<Part> {
        let path = Path::new(OsStr::from_bytes(path));
        Part::ALL.into_iter().find(|part| path.starts_with(self.part(*part)))
    }

    /// The operation in whose tree a path lies.
    pub(crate) fn number_of(&self, path: &[u8]) -> Option<u64> {
        let path = Path::new(OsStr::from_bytes(path));
        let below =
            path.strip_prefix(self.part(self.part_of(path.as_os_str().as_bytes())?)).ok()?;
        below.iter().next()?.to_str()?.parse().ok()
    }

    /// The host's files that a command has as its standard input and its standard error.
    pub(crate) fn streams(&self) -> [PathBuf; 2] {
        ["stdin", "stderr"].map(|name| self.part(Part::Host).join(name))
    }
}
