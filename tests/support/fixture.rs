//! The directories of one run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, geteuid};
use tempfile::TempDir;

/// A workspace, a directory of the host beside it, and a place for the facts, all owned by whoever
/// runs the command: so only the sandbox is in its way.
pub(crate) struct Fixture {
    dir: TempDir,
}

/// What the host's file says.
pub(crate) const CONTENT: &str = "the host's\n";

impl Fixture {
    /// Makes the directories below /var/tmp, because the sandbox has a /tmp of its own.
    pub(crate) fn new(owner: u32) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("dsh-fixture-").tempdir_in("/var/tmp")?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
        let fixture = Self { dir };
        for path in [fixture.workspace(), fixture.outside(), fixture.report()] {
            fs::create_dir(&path)?;
            own(&path, owner)?;
        }
        fs::write(fixture.file(), CONTENT)?;
        own(&fixture.file(), owner)?;
        Ok(fixture)
    }

    /// The directory that holds the others.
    pub(crate) fn top(&self) -> &Path {
        self.dir.path()
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A directory of the host outside every writable root.
    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// The one file in it.
    pub(crate) fn file(&self) -> PathBuf {
        self.outside().join("file")
    }

    /// Where facts go.
    pub(crate) fn report(&self) -> PathBuf {
        self.dir.path().join("report")
    }

    /// The facts of the run.
    pub(crate) fn facts(&self) -> PathBuf {
        self.report().join("facts.json")
    }
}

/// Gives a file to a user and the group of the same number; an ordinary user keeps its own.
pub(crate) fn own(path: &Path, owner: u32) -> io::Result<()> {
    if geteuid().is_root() {
        nix::unistd::chown(path, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
    }
    Ok(())
}
