//! Read-only mounts before `mount_setattr` (Linux 5.12): each mount for itself, mount(2).

use dsh_kernel::mount::{NODEV, NOEXEC, NOSUID, RDONLY};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MsFlags, mount};
use std::path::Path;

use crate::error::{LayerError, Step};
use crate::layers::tree::{LAYER, open_canonical};
use crate::mountinfo::{self, Mount};

/// Makes the whole tree private, and every mount of it read-only.
pub(crate) fn everything_read_only() -> Result<(), LayerError> {
    add_flags_below(Path::new("/"), RDONLY | NOSUID | NODEV)
}

/// Makes the mounts from `place` downwards private, and adds flags to each.
pub(crate) fn add_flags_below(place: &Path, flags: u64) -> Result<(), LayerError> {
    private(place)?;
    let mounts = mountinfo::read().step(LAYER, "read mountinfo")?;
    for mount in mounts.iter().filter(|mount| mount.point.starts_with(place)) {
        if is_in_reach(mount)? {
            add_flags(mount, flags)
                .step(LAYER, "remount")
                .map_err(|error| error.at(&mount.point))?;
        }
    }
    Ok(())
}

/// Whether the mount's name leads to it. One that is covered by another, or lies behind a directory
/// that we may not search, is out of the command's reach too.
fn is_in_reach(mount: &Mount) -> Result<bool, LayerError> {
    match open_canonical(AT_FDCWD, &mount.point) {
        Ok(file) => {
            let found = mountinfo::of_file(&file).step(LAYER, "read fdinfo")?;
            Ok(found == mount.id)
        }
        Err(Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR | Errno::ELOOP) => Ok(false),
        Err(errno) => Err(LayerError::new(LAYER, "open", errno).at(&mount.point)),
    }
}

fn private(place: &Path) -> Result<(), LayerError> {
    mount(None::<&str>, place, None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .step(LAYER, "make private")
        .map_err(|error| error.at(place))
}

/// Adds flags to one mount. Its own are repeated, because a remount replaces them all and clearing
/// a locked one is refused; those about access times are kept when none is named.
fn add_flags(existing: &Mount, add: u64) -> Result<(), Errno> {
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
    for (attribute, flag) in [
        (RDONLY, MsFlags::MS_RDONLY),
        (NOSUID, MsFlags::MS_NOSUID),
        (NODEV, MsFlags::MS_NODEV),
        (NOEXEC, MsFlags::MS_NOEXEC),
    ] {
        flags.set(flag, add & attribute != 0);
    }
    for option in existing.options.split(',') {
        flags |= match option {
            "ro" => MsFlags::MS_RDONLY,
            "nosuid" => MsFlags::MS_NOSUID,
            "nodev" => MsFlags::MS_NODEV,
            "noexec" => MsFlags::MS_NOEXEC,
            _ => MsFlags::empty(),
        };
    }
    mount(None::<&str>, &existing.point, None::<&str>, flags, None::<&str>)
}
