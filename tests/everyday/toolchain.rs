//! The Rust toolchain of whoever runs the tests. It may lie in a home that others cannot enter.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::unistd::geteuid;

use crate::support::persona::Persona;
use crate::support::private_mounts::with_private_mounts;

/// Where it is, if there is one.
pub(crate) fn find() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(sysroot.trim_end()))
}

/// Does the work with the toolchain at a place where the persona can use it.
pub(crate) fn reachable<T: Send>(
    toolchain: &Path,
    persona: Persona,
    work: impl FnOnce(&Path) -> io::Result<T> + Send,
) -> io::Result<T> {
    if persona.id() == geteuid().as_raw() {
        return work(toolchain);
    }
    let place = tempfile::Builder::new().prefix("dsh-toolchain-").tempdir_in("/var/tmp")?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    with_private_mounts(|| {
        let none = None::<&str>;
        mount(Some(toolchain), place.path(), none, MsFlags::MS_BIND, none)?;
        work(place.path())
    })
}
