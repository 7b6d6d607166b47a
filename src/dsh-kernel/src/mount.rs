//! The mount calls that work on descriptors (Linux 5.2; `mount_setattr` 5.12).

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::{NixPath, Result};

/// What a mount is set to, mount_setattr(2). Flags are only ever added: clearing a locked flag is
/// refused by the kernel, and nothing here needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `MOUNT_ATTR_*` to set.
    pub set: u64,
    /// Make the mounts private, so that nothing propagates in or out.
    pub private: bool,
}

/// `MOUNT_ATTR_RDONLY`
pub const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// `MOUNT_ATTR_NOSUID`
pub const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// `MOUNT_ATTR_NODEV`
pub const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
/// `MOUNT_ATTR_NOEXEC`
pub const NOEXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

/// Whether a call reaches the submounts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The one mount.
    One,
    /// The mount and everything mounted below it.
    Recursive,
}

/// A detached copy of the mount that `path` names, below `directory` when it is relative, or of
/// `directory` itself when it is empty: open_tree(2) with `OPEN_TREE_CLONE`.
///
/// # Errors
///
/// `EINVAL` when the descriptor comes from another mount namespace, or when a copy of one mount
/// would uncover what a locked submount hides; `EPERM` without `CAP_SYS_ADMIN`.
pub fn clone_tree<P: ?Sized + NixPath>(
    directory: BorrowedFd<'_>,
    path: &P,
    reach: Reach,
) -> Result<OwnedFd> {
    let mut flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | empty_path(path);
    if reach == Reach::Recursive {
        flags |= at_flag(libc::AT_RECURSIVE)?;
    }
    let fd = path.with_nix_path(|path| {
        // SAFETY: `path` is a NUL-terminated string that outlives the call; the rest are integers.
        super::descriptor(unsafe {
            libc::syscall(libc::SYS_open_tree, directory.as_raw_fd(), path.as_ptr(), flags)
        })
    })??;
    // SAFETY: the kernel has just returned this descriptor to us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a detached tree on top of `target`: move_mount(2) by descriptors alone, so that no
/// name is looked up again.
///
/// # Errors
///
/// `EINVAL` when `target` lies in another mount namespace; `EPERM` without `CAP_SYS_ADMIN`.
pub fn attach(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are NUL-terminated literals; the rest are integers.
    super::checked(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    })
    .map(drop)
}

/// Sets attributes of the mount that `path` names, below `directory` or `directory` itself when
/// empty: mount_setattr(2).
///
/// # Errors
///
/// `ENOSYS` below Linux 5.12; `EINVAL` when the path is not the root of a mount; `EPERM` without
/// `CAP_SYS_ADMIN`.
pub fn set_attributes<P: ?Sized + NixPath>(
    directory: BorrowedFd<'_>,
    path: &P,
    reach: Reach,
    attributes: Attributes,
) -> Result<()> {
    let mut flags = empty_path(path);
    if reach == Reach::Recursive {
        flags |= at_flag(libc::AT_RECURSIVE)?;
    }
    let attr = libc::mount_attr {
        attr_set: attributes.set,
        attr_clr: 0,
        propagation: if attributes.private { libc::MS_PRIVATE } else { 0 },
        userns_fd: 0,
    };
    path.with_nix_path(|path| {
        // SAFETY: `path` is NUL-terminated, `attr` is a mount_attr of the size passed; both outlive
        // the call, which only reads them.
        super::checked(unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                directory.as_raw_fd(),
                path.as_ptr(),
                flags,
                &raw const attr,
                size_of::<libc::mount_attr>(),
            )
        })
    })?
    .map(drop)
}

fn empty_path<P: ?Sized + NixPath>(path: &P) -> libc::c_uint {
    if path.is_empty() { libc::AT_EMPTY_PATH.cast_unsigned() } else { 0 }
}

fn at_flag(flag: libc::c_int) -> Result<libc::c_uint> {
    libc::c_uint::try_from(flag).map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    #[test]
    fn mount_attr_has_the_layout_of_the_first_version() {
        // MOUNT_ATTR_SIZE_VER0 of include/uapi/linux/mount.h
        assert_eq!(size_of::<libc::mount_attr>(), 32);
        assert_eq!(std::mem::offset_of!(libc::mount_attr, attr_clr), 8);
        assert_eq!(std::mem::offset_of!(libc::mount_attr, propagation), 16);
        assert_eq!(std::mem::offset_of!(libc::mount_attr, userns_fd), 24);
    }
}
