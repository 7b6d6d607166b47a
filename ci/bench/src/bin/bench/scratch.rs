//! The directory of this run and the workspaces in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;

use crate::Result;

const FILES_PER_DIRECTORY: u32 = 1000;

/// Removed with all that is in it, also when a measurement fails.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Below `parent`, which should be a disk: a tmpfs would hide what a file system does with many
    /// files.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let path = fs::canonicalize(parent)
            .and_then(|parent| {
                let path = parent.join(format!("dsh-bench-{}", process::id()));
                fs::create_dir(&path).map(|()| path)
            })
            .map_err(|error| format!("{}: {error}", parent.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A workspace of so many empty files.
    pub(crate) fn workspace(&self, name: &str, files: u32) -> Result<PathBuf> {
        let workspace = self.0.join(name);
        fs::create_dir(&workspace)?;
        let mut directory = workspace.clone();
        for file in 0..files {
            if file % FILES_PER_DIRECTORY == 0 {
                directory = workspace.join(format!("d{}", file / FILES_PER_DIRECTORY));
                fs::create_dir(&directory)?;
            }
            File::create(directory.join(format!("f{file}")))?;
        }
        Ok(workspace)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("bench: {} is left behind: {error}", self.0.display());
        }
    }
}
