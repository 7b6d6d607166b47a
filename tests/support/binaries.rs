//! The programs under test, copied to where every user can execute them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// `dsh-run` and `dsh-probe` in a directory below /var/tmp: a target directory may lie in a home
/// that others cannot enter, or below /tmp, which the sandbox replaces.
pub(crate) struct Binaries {
    dir: TempDir,
}

impl Binaries {
    /// Copies `dsh_run` and the probe that was built beside it.
    pub(crate) fn copy(dsh_run: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("dsh-binaries-").tempdir_in("/var/tmp")?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
        fs::copy(dsh_run, dir.path().join("dsh-run"))?;
        fs::copy(probe_beside(dsh_run)?, dir.path().join("dsh-probe"))?;
        Ok(Self { dir })
    }

    /// Where they are.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The command line under test.
    pub(crate) fn dsh_run(&self) -> PathBuf {
        self.dir.path().join("dsh-run")
    }

    /// The program that makes the forbidden attempts.
    pub(crate) fn dsh_probe(&self) -> PathBuf {
        self.dir.path().join("dsh-probe")
    }
}

/// Finds the probe next to `dsh_run`. Cargo builds no binaries of other packages for a test, so
/// where cargo is at hand it is asked first: an old probe would give old answers.
fn probe_beside(dsh_run: &Path) -> io::Result<PathBuf> {
    let profile_dir = dsh_run.parent().unwrap_or(Path::new("."));
    if let (Some(cargo), Some(target)) = (std::env::var_os("CARGO"), profile_dir.parent()) {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--package", "dsh-probe", "--target-dir"]).arg(target);
        if profile_dir.ends_with("release") {
            build.arg("--release");
        }
        if !build.status()?.success() {
            return Err(io::Error::other("cargo could not build dsh-probe"));
        }
    }
    let probe = profile_dir.join("dsh-probe");
    if !probe.exists() {
        let message = format!("{}: run cargo build -p dsh-probe first", probe.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    Ok(probe)
}
