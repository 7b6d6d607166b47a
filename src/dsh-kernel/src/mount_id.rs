//! On which mount a name lies.

use std::path::Path;

use nix::errno::Errno;
use nix::{NixPath, Result};

/// The mount's number in the mount table, statx(2) with `STATX_MNT_ID` (Linux 5.8): of a symbolic
/// link itself, where the name is one. Opens nothing, and does not ask the file system for anything
/// but the name.
///
/// # Errors
///
/// `EOPNOTSUPP` on an older kernel; otherwise that of the call.
pub fn of_name(path: &Path) -> Result<u64> {
    // SAFETY: a statx is integers only, for which zeroes are a value.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT | libc::AT_STATX_DONT_SYNC;
    let called = path.with_nix_path(|path| {
        // SAFETY: `path` is NUL-terminated and outlives the call; the kernel fills one statx.
        unsafe {
            libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, libc::STATX_MNT_ID, &raw mut status)
        }
    })?;
    Errno::result(called)?;
    if status.stx_mask & libc::STATX_MNT_ID == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(status.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::Path;

    #[test]
    fn the_number_is_that_of_fdinfo() {
        let file = std::fs::File::open("/").expect("the root");
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))
            .expect("fdinfo");
        let number = super::of_name(Path::new("/")).expect("a mount");
        assert!(info.contains(&format!("mnt_id:\t{number}\n")), "{info}");
    }
}
