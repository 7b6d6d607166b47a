//! Process descriptors, which unlike a pid can never come to mean another process.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::Result;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// A descriptor of the process `pid`, readable once it has ended: pidfd_open(2) (Linux 5.3).
///
/// # Errors
///
/// `ESRCH` when there is no such process.
pub fn open(pid: Pid) -> Result<OwnedFd> {
    // SAFETY: the call takes two integers.
    let fd = super::descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    // SAFETY: the kernel has just returned this descriptor to us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor of the thread `thread`, whose descriptors need not be those of its process:
/// pidfd_open(2) with `PIDFD_THREAD` (Linux 6.9). On an older kernel a descriptor of `process`.
///
/// # Errors
///
/// `ESRCH` when there is no such thread.
pub fn open_thread(thread: Pid, process: Pid) -> Result<OwnedFd> {
    const PIDFD_THREAD: libc::c_int = libc::O_EXCL;
    // SAFETY: the call takes two integers.
    let opened = super::descriptor(unsafe {
        libc::syscall(libc::SYS_pidfd_open, thread.as_raw(), PIDFD_THREAD)
    });
    match opened {
        // SAFETY: the kernel has just returned this descriptor to us; nobody else owns it.
        Ok(fd) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        Err(Errno::EINVAL) => open(process),
        Err(errno) => Err(errno),
    }
}

/// Sends a signal to the process behind the descriptor: pidfd_send_signal(2) (Linux 5.1).
///
/// # Errors
///
/// `ESRCH` when it has ended and was waited for; `EPERM` when we may not.
pub fn send_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<()> {
    // SAFETY: a null siginfo is allowed and means what kill(2) would send; the rest are integers.
    super::checked(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as libc::c_int,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })
    .map(drop)
}

/// A copy of the process's descriptor `number`, close-on-exec: pidfd_getfd(2) (Linux 5.6).
///
/// # Errors
///
/// `EBADF` when nothing is open under it; `EPERM` when we may not trace the process; `ESRCH` when
/// it is gone.
pub fn copy_descriptor(pidfd: BorrowedFd<'_>, number: i32) -> Result<OwnedFd> {
    // SAFETY: the call takes three integers.
    let fd = super::descriptor(unsafe {
        libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0)
    })?;
    // SAFETY: the kernel has just returned this descriptor to us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
