//! Read-only mounts before `mount_setattr` (Linux 5.12): each mount for itself, mount(2).

use dsh_kernel::mount::{NODEV, NOEXEC, NOSUID, RDONLY};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use std::path::Path;

use crate::error::{LayerError, Step};
use crate::layers::tree::LAYER;
use crate::mountinfo::{self, Mount};

/// Makes the whole tree private, and every mount of it read-only.
pub(crate) fn everything_read_only() -> Result<(), LayerError> {
    private(Path::new("/"))?;
    let mounts = mountinfo::read().step(LAYER, "read mountinfo")?;
    for mount in &mounts {
        match add_flags(mount, RDONLY | NOSUID | NODEV) {
            Ok(()) => {}
            // Covered by another mount, or behind a directory that we may not search: what we
            // cannot reach with all capabilities here, the command cannot reach without them.
            Err(Errno::EINVAL | Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR) => {}
            Err(errno) => {
                return Err(LayerError::new(LAYER, "remount", errno).at(&mount.point));
            }
        }
    }
    Ok(())
}

/// The same flags on the mounts from `place` downwards.
pub(crate) fn add_flags_below(place: &Path, flags: u64) -> Result<(), LayerError> {
    private(place)?;
    let mounts = mountinfo::read().step(LAYER, "read mountinfo")?;
    for mount in mounts.iter().filter(|mount| mount.point.starts_with(place)) {
        add_flags(mount, flags).step(LAYER, "remount").map_err(|error| error.at(&mount.point))?;
    }
    Ok(())
}

fn private(place: &Path) -> Result<(), LayerError> {
    mount(None::<&str>, place, None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .step(LAYER, "make private")
        .map_err(|error| error.at(place))
}

/// Adds flags to one mount. Its own are repeated, because a remount replaces them all and clearing
/// a locked one is refused.
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
            "noatime" => MsFlags::MS_NOATIME,
            "nodiratime" => MsFlags::MS_NODIRATIME,
            "relatime" => MsFlags::MS_RELATIME,
            _ => MsFlags::empty(),
        };
    }
    mount(None::<&str>, &existing.point, None::<&str>, flags, None::<&str>)
}
