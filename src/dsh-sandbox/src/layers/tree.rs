//! The mount layer's tools: file systems and trees put at canonical names.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dsh_facts::Layer;
use dsh_kernel::mount;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MsFlags, mount as mount_file_system};

use crate::error::{LayerError, Step};

pub(crate) const LAYER: Layer = Layer::Mount;

/// Mounts a tmpfs at a place whose ancestors only the sandbox or root can change.
pub(crate) fn mount_tmpfs(place: &Path, flags: MsFlags, options: &str) -> Result<(), LayerError> {
    mount_file_system(Some("tmpfs"), place, Some("tmpfs"), flags, Some(options))
        .step(LAYER, "mount tmpfs")
        .map_err(|error| error.at(place))
}

/// Opens a directory or file by its canonical name, following no symbolic link: whoever planted
/// one since the name was resolved is told by ELOOP.
pub(crate) fn open_canonical(directory: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(directory, path, how)
}

/// Attaches a tree at a canonical name.
pub(crate) fn attach(tree: BorrowedFd<'_>, place: &Path) -> Result<(), LayerError> {
    let target =
        open_canonical(AT_FDCWD, place).step(LAYER, "open").map_err(|error| error.at(place))?;
    mount::attach(tree, target.as_fd()).step(LAYER, "move_mount").map_err(|error| error.at(place))
}
