//! Thin wrappers of the Linux system calls that a sandbox needs and `nix` lacks.
//!
//! All unsafe code of dsh lives here. A wrapper makes one call, knows no policy, and returns the
//! kernel's errno untouched.

pub mod access;
pub mod connection;
pub mod descriptors;
pub mod landlock;
pub mod loopback;
pub mod metadata;
pub mod mount;
pub mod node;
pub mod notification;
pub mod pidfd;
pub mod process;
pub mod refusal;
pub mod seccomp;
pub mod signals;
pub mod socket;

use nix::Result;
use nix::errno::Errno;

/// Turns the return value of `libc::syscall` into a result.
fn checked(value: libc::c_long) -> Result<libc::c_long> {
    Errno::result(value)
}

/// The descriptor that a system call returned, as the C type it has in every ABI.
fn descriptor(value: libc::c_long) -> Result<libc::c_int> {
    libc::c_int::try_from(checked(value)?).map_err(|_| Errno::EOVERFLOW)
}
