//! What the calling process may do with an open file, by the kernel's own account.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::Result;
use nix::unistd::AccessFlags;

/// Asks for the file itself, whatever has become of its name, with the effective ids and
/// capabilities: faccessat2(2) with `AT_EMPTY_PATH` and `AT_EACCESS` (Linux 5.8).
///
/// # Errors
///
/// `EACCES`: the mode or an ACL refuses. `EROFS`: those would allow it, and the mount or its file
/// system is read-only; devices, fifos and sockets may be written even there. `ENOSYS` on an older
/// kernel.
pub fn check(file: BorrowedFd<'_>, mode: AccessFlags) -> Result<()> {
    // SAFETY: the path is an empty C string; the rest are integers.
    super::checked(unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            file.as_raw_fd(),
            c"".as_ptr(),
            mode.bits(),
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    })
    .map(drop)
}
