//! Descriptors: closing all that a process does not need, marking the rest close-on-exec.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::Result;
use nix::errno::Errno;

/// Closes every descriptor from 3 up, except those in `keep`.
///
/// For a process that has just been forked and starts a life of its own: whoever owned the closed
/// descriptors lives on in the parent, where they stay open. In this process their owners must not
/// be used again (dropping them is harmless only before anything else is opened, so leak them).
///
/// # Errors
///
/// The errno of close_range(2) (Linux 5.9).
pub fn close_all_but(keep: &[BorrowedFd<'_>]) -> Result<()> {
    let mut kept: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).filter(|&fd| fd > 2).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut first: RawFd = 3;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, RawFd::MAX, 0)
}

/// Marks every descriptor from `first` up close-on-exec: exec will close them.
///
/// # Errors
///
/// The errno of close_range(2); `EINVAL` below Linux 5.11, which lacks `CLOSE_RANGE_CLOEXEC`.
pub fn close_on_exec_from(first: RawFd) -> Result<()> {
    close_range(first, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// A copy of the descriptor with this number, close-on-exec, above the standard three.
///
/// For numbers that a person gave, whose owner is whoever started the process.
///
/// # Errors
///
/// `EBADF` when nothing is open under it.
pub fn duplicate(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: fcntl with these commands takes integers; a number that is not open is EBADF.
    let copy = Errno::result(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Marks the descriptor with this number close-on-exec.
///
/// # Errors
///
/// `EBADF` when nothing is open under it.
pub fn close_on_exec(number: RawFd) -> Result<()> {
    // SAFETY: fcntl with this command takes integers; a number that is not open is EBADF.
    Errno::result(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// Makes `number`, which must be above the standard three, a copy of the descriptor that survives
/// exec.
///
/// # Errors
///
/// `EINVAL` for a standard number; `EBUSY` when something is open under it already.
pub fn place(descriptor: BorrowedFd<'_>, number: RawFd) -> Result<()> {
    if number <= 2 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: fcntl takes integers. With a lower bound it never closes what is open.
    let copy =
        Errno::result(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD, number) })?;
    if copy == number { Ok(()) } else { Err(Errno::EBUSY) }
}

fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> Result<()> {
    let (Ok(first), Ok(last)) = (libc::c_uint::try_from(first), libc::c_uint::try_from(last))
    else {
        return Err(Errno::EBADF);
    };
    // SAFETY: the call takes three integers and touches no memory of ours. That a closed number
    // may still have an owner is what the callers' documentation is about.
    super::checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}
