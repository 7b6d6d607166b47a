//! Loading a seccomp filter.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::raw::c_ushort;

use nix::Result;
use nix::errno::Errno;

/// One instruction of classic BPF: `struct sock_filter` of linux/filter.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when a comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Installs a filter for the calling thread and all it starts: seccomp(2),
/// `SECCOMP_SET_MODE_FILTER`. There is no way back.
///
/// # Errors
///
/// `EACCES` without no_new_privs or `CAP_SYS_ADMIN`; `EINVAL` for a program that the kernel's
/// checker refuses; `ENOSYS` or `EINVAL` on a kernel without seccomp filters; `EMSGSIZE` here for
/// more instructions than the kernel takes.
pub fn load(program: &[Instruction]) -> Result<()> {
    install(program, 0).map(drop)
}

/// The same, and a descriptor on which the calls arrive that the filter answers with
/// `SECCOMP_RET_USER_NOTIF` (Linux 5.0). Once such a call has been received only a fatal signal
/// takes its caller away from it (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`), where the kernel can
/// do that (Linux 5.19).
///
/// # Errors
///
/// `EBUSY` when a filter on this thread has a listener already; otherwise as [`load`].
pub fn load_with_listener(program: &[Instruction]) -> Result<OwnedFd> {
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let descriptor = match install(program, listener | killable) {
        Err(Errno::EINVAL) => install(program, listener)?,
        other => other?,
    };
    let descriptor = libc::c_int::try_from(descriptor).map_err(|_| Errno::EOVERFLOW)?;
    // SAFETY: the kernel has just returned this descriptor to us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn install(program: &[Instruction], flags: libc::c_ulong) -> Result<libc::c_long> {
    let len = c_ushort::try_from(program.len()).map_err(|_| Errno::EMSGSIZE)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: `program` points to `len` instructions whose layout is that of sock_filter (tested
    // below); the kernel copies them and writes nothing.
    super::checked(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })
}

/// Whether the running kernel can refuse calls with an errno of our choice
/// (`SECCOMP_GET_ACTION_AVAIL`, Linux 4.14).
///
/// # Errors
///
/// `ENOSYS` without seccomp; `EOPNOTSUPP` when the action is unknown.
pub fn errno_action_available() -> Result<()> {
    action_available(libc::SECCOMP_RET_ERRNO)
}

/// Whether it can hand calls to a supervisor (Linux 5.0).
///
/// # Errors
///
/// As [`errno_action_available`].
pub fn listener_available() -> Result<()> {
    action_available(libc::SECCOMP_RET_USER_NOTIF)
}

fn action_available(action: u32) -> Result<()> {
    // SAFETY: the kernel reads one u32, which outlives the call.
    super::checked(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_usize, &raw const action)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn an_instruction_is_a_sock_filter() {
        assert_eq!(size_of::<Instruction>(), size_of::<libc::sock_filter>());
        assert_eq!(align_of::<Instruction>(), align_of::<libc::sock_filter>());
        assert_eq!(offset_of!(Instruction, code), offset_of!(libc::sock_filter, code));
        assert_eq!(offset_of!(Instruction, jt), offset_of!(libc::sock_filter, jt));
        assert_eq!(offset_of!(Instruction, jf), offset_of!(libc::sock_filter, jf));
        assert_eq!(offset_of!(Instruction, k), offset_of!(libc::sock_filter, k));
    }
}
