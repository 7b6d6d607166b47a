//! What a name or an open file is, as far as the kernel knows without asking a file server.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::{NixPath, Result};

/// A file and the mount through which it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The mount's number in the mount table.
    pub mount: u64,
    /// The device of its file system, as stat(2) has it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its type and permissions.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its number of names.
    pub links: u32,
    /// The device that it stands for, where it is one.
    pub rdev: u64,
}

impl Node {
    /// The type, `S_IFDIR` and the like.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.mode & libc::S_IFMT
    }
}

/// The file that a name leads to, or the symbolic link itself: statx(2) with `STATX_MNT_ID` (Linux
/// 5.8). Opens nothing, and does not ask the file system for anything but the name.
///
/// # Errors
///
/// `EOPNOTSUPP` on an older kernel; otherwise that of the call.
pub fn of_name(path: &Path) -> Result<Node> {
    path.with_nix_path(|path| ask(libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW))?
}

/// The same of an open file.
///
/// # Errors
///
/// As [`of_name`].
pub fn of_file(file: BorrowedFd<'_>) -> Result<Node> {
    ask(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
}

fn ask(directory: RawFd, path: &CStr, flags: libc::c_int) -> Result<Node> {
    // SAFETY: a statx is integers only, for which zeroes are a value.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    let flags = flags | libc::AT_NO_AUTOMOUNT | libc::AT_STATX_DONT_SYNC;
    let mask = libc::STATX_BASIC_STATS | libc::STATX_MNT_ID;
    // SAFETY: `path` is NUL-terminated and outlives the call; the kernel fills one statx.
    Errno::result(unsafe { libc::statx(directory, path.as_ptr(), flags, mask, &raw mut status) })?;
    if status.stx_mask & libc::STATX_MNT_ID == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(Node {
        mount: status.stx_mnt_id,
        device: libc::makedev(status.stx_dev_major, status.stx_dev_minor),
        inode: status.stx_ino,
        mode: u32::from(status.stx_mode),
        uid: status.stx_uid,
        links: status.stx_nlink,
        rdev: libc::makedev(status.stx_rdev_major, status.stx_rdev_minor),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn the_mount_is_that_of_fdinfo_and_the_rest_that_of_stat() {
        let file = std::fs::File::open("/").expect("the root");
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))
            .expect("fdinfo");
        let node = super::of_name(Path::new("/")).expect("a mount");
        assert!(info.contains(&format!("mnt_id:\t{}\n", node.mount)), "{info}");
        assert_eq!(super::of_file(file.as_fd()), Ok(node));
        let metadata = file.metadata().expect("stat");
        assert_eq!((node.device, node.inode), (metadata.dev(), metadata.ino()));
        assert_eq!((node.mode, node.uid), (metadata.mode(), metadata.uid()));
    }
}
