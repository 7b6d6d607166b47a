//! Changing the metadata of an open file, also of one that is open for its path alone (`O_PATH`).
//!
//! Calls that take no such descriptor on every kernel take its link in a process's /proc/PID/fd.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::Result;
use nix::errno::Errno;

/// Sets the mode of the file behind a link: chmod(2).
///
/// # Errors
///
/// That of the call.
pub fn set_mode(link: &CStr, mode: u32) -> Result<()> {
    // SAFETY: the name is NUL-terminated and outlives the call.
    Errno::result(unsafe { libc::chmod(link.as_ptr(), mode) }).map(drop)
}

/// Sets owner and group, each unless it is `u32::MAX`: fchownat(2) with `AT_EMPTY_PATH`.
///
/// # Errors
///
/// That of the call.
pub fn set_owner(file: BorrowedFd<'_>, uid: u32, gid: u32) -> Result<()> {
    // SAFETY: the path is an empty C string; the rest are integers.
    Errno::result(unsafe {
        libc::fchownat(file.as_raw_fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH)
    })
    .map(drop)
}

/// Seconds and nanoseconds of one time; the nanoseconds may be `UTIME_NOW` or `UTIME_OMIT`.
pub type Time = (i64, i64);

/// Sets access and modification time, both to now when absent: utimensat(2) with `AT_EMPTY_PATH`
/// (Linux 5.8).
///
/// # Errors
///
/// That of the call.
pub fn set_times(file: BorrowedFd<'_>, times: Option<[Time; 2]>) -> Result<()> {
    let times =
        times.map(|times| times.map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec }));
    let pointer = times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr());
    // SAFETY: the path is an empty C string, and `pointer` is null or two timespecs that outlive
    // the call.
    Errno::result(unsafe {
        libc::utimensat(file.as_raw_fd(), c"".as_ptr(), pointer, libc::AT_EMPTY_PATH)
    })
    .map(drop)
}

/// Sets an extended attribute of the file behind a link: setxattr(2).
///
/// # Errors
///
/// That of the call.
pub fn set_attribute(link: &CStr, name: &CStr, value: &[u8], flags: i32) -> Result<()> {
    // SAFETY: both names are NUL-terminated, and the kernel reads `value.len()` bytes of the value.
    Errno::result(unsafe {
        libc::setxattr(link.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
    })
    .map(drop)
}

/// Removes an extended attribute of the file behind a link: removexattr(2).
///
/// # Errors
///
/// That of the call.
pub fn remove_attribute(link: &CStr, name: &CStr) -> Result<()> {
    // SAFETY: both names are NUL-terminated and outlive the call.
    Errno::result(unsafe { libc::removexattr(link.as_ptr(), name.as_ptr()) }).map(drop)
}

/// The longest list of names, xattr(7).
const LIST_MAX: usize = 65_536;

/// Whether the file behind a link has an extended attribute of this name, which needs no right to
/// read it: listxattr(2). Those of administrators are not there for others.
#[must_use]
pub fn has_attribute(link: &CStr, name: &CStr) -> bool {
    let mut names = vec![0_u8; LIST_MAX];
    // SAFETY: the link is NUL-terminated, and the kernel writes at most `names.len()` bytes.
    let length = unsafe { libc::listxattr(link.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    let listed = names.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    listed.split(|byte| *byte == 0).any(|one| one == name.to_bytes())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    #[test]
    fn a_file_that_is_open_for_its_path_alone_is_changed() {
        let path = std::env::temp_dir().join(format!("dsh-metadata-{}", std::process::id()));
        File::create(&path).expect("a file");
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(&path)
            .expect("open for its path");
        let link = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("a name");
        super::set_mode(&link, 0o640).expect("chmod");
        assert!(!super::has_attribute(&link, c"user.none"));
        super::set_times(file.as_fd(), Some([(1, 0), (2, 5)])).expect("utimensat");
        super::set_owner(file.as_fd(), u32::MAX, u32::MAX).expect("chown");
        let metadata = std::fs::metadata(&path).expect("stat");
        std::fs::remove_file(&path).expect("unlink");
        assert_eq!(metadata.mode() & 0o7777, 0o640);
        assert_eq!((metadata.atime(), metadata.mtime(), metadata.mtime_nsec()), (1, 2, 5));
    }
}
