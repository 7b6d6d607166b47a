//! Calls that a filter hands to a supervisor: seccomp_unotify(2).

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::Result;
use nix::errno::Errno;

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Names the call for as long as it waits.
    pub id: u64,
    /// The thread that calls, in the receiver's pid namespace; 0 where it is not visible there.
    pub thread: i32,
    /// The number of the call.
    pub number: u32,
    /// Its arguments, as they were in the registers.
    pub arguments: [u64; 6],
}

/// Waits for a call.
///
/// # Errors
///
/// `ENOENT` when the caller went away before its call was received; `EINTR`; on some kernels
/// `ENOTCONN` once no process has the filter any more.
pub fn receive(listener: BorrowedFd<'_>) -> Result<Notification> {
    // SAFETY: the structure is integers only, for which zeroes are a value; the kernel demands
    // them.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: RECV writes one seccomp_notif, whose size is part of the request's number.
    Errno::result(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call)
    })?;
    Ok(Notification {
        id: call.id,
        thread: i32::try_from(call.pid).unwrap_or(0),
        number: call.data.nr.cast_unsigned(),
        arguments: call.data.args,
    })
}

/// Lets the kernel go on with the call, as if there had been no filter. The kernel reads the
/// caller's memory again then.
///
/// # Errors
///
/// `ENOENT` when the call does not wait any more.
pub fn go_on(listener: BorrowedFd<'_>, id: u64) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, reason = "one bit")]
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    answer(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
}

/// Has the call return a value.
///
/// # Errors
///
/// As [`go_on`].
pub fn succeed(listener: BorrowedFd<'_>, id: u64, value: i64) -> Result<()> {
    answer(listener, libc::seccomp_notif_resp { id, val: value, error: 0, flags: 0 })
}

/// Has the call fail with an errno: a number, because the kernel's own `ERESTARTSYS` is allowed.
///
/// # Errors
///
/// As [`go_on`].
pub fn fail(listener: BorrowedFd<'_>, id: u64, errno: i32) -> Result<()> {
    answer(listener, libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 })
}

fn answer(listener: BorrowedFd<'_>, response: libc::seccomp_notif_resp) -> Result<()> {
    // SAFETY: SEND reads one seccomp_notif_resp, which outlives the call.
    Errno::result(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response)
    })
    .map(drop)
}

/// Whether the call still waits: what was read of its caller before is then the caller's indeed,
/// and not that of a process which has got its number since.
#[must_use]
pub fn waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: ID_VALID reads one u64, which outlives the call.
    let answer = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id)
    };
    answer == 0
}

/// Has caller and supervisor take turns on one processor, which makes an answer many times faster
/// (`SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`, Linux 6.6).
///
/// # Errors
///
/// `EINVAL` on older kernels.
pub fn wake_synchronously(listener: BorrowedFd<'_>) -> Result<()> {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: SET_FLAGS takes the flags as an integer in place of a pointer.
    Errno::result(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP)
    })
    .map(drop)
}
