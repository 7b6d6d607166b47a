//! Loading a seccomp filter.

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
    let len = c_ushort::try_from(program.len()).map_err(|_| Errno::EMSGSIZE)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: `program` points to `len` instructions whose layout is that of sock_filter (tested
    // below); the kernel copies them and writes nothing.
    super::checked(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_usize, &raw const program)
    })
    .map(drop)
}

/// Whether the running kernel can refuse calls with an errno of our choice
/// (`SECCOMP_GET_ACTION_AVAIL`, Linux 4.14).
///
/// # Errors
///
/// `ENOSYS` without seccomp; `EOPNOTSUPP` when the action is unknown.
pub fn errno_action_available() -> Result<()> {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
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
