//! Raw system calls. The probe bypasses libc's wrappers on purpose: they hide errnos, split one
//! call into others and refuse arguments that an attacker would pass.

use std::ffi::CStr;

use libc::c_long;
use nix::errno::Errno;

/// One argument of a system call.
pub(crate) enum Arg<'a> {
    Int(i64),
    Path(&'a CStr),
    In(&'a [u8]),
    Out(&'a mut [u8]),
}

impl Arg<'_> {
    fn register(&mut self) -> i64 {
        match self {
            Self::Int(value) => *value,
            Self::Path(path) => address(path.to_bytes_with_nul()).cast_signed(),
            Self::In(bytes) => address(bytes).cast_signed(),
            Self::Out(bytes) => (bytes.as_mut_ptr().expose_provenance() as u64).cast_signed(),
        }
    }
}

/// A null pointer, or a zero.
pub(crate) const NONE: Arg<'static> = Arg::Int(0);

/// Relative paths are looked up in the working directory.
pub(crate) const CWD: Arg<'static> = Arg::Int(libc::AT_FDCWD as i64);

/// Where a buffer lies, for structures that hold pointers.
pub(crate) fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

/// The bytes of a kernel structure whose fields are all 64 bits wide.
pub(crate) fn words(fields: &[u64]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
}

/// Makes system call `number`.
pub(crate) fn call(number: c_long, mut arguments: Vec<Arg<'_>>) -> Result<i64, Errno> {
    let mut registers = [0; 6];
    for (register, argument) in registers.iter_mut().zip(&mut arguments) {
        *register = argument.register();
    }
    let [a, b, c, d, e, f] = registers;
    // SAFETY: every pointer in the registers comes from a buffer borrowed by `arguments`, which
    // lives until the call has returned, and each attempt passes sizes no larger than its buffers.
    // No attempt unmaps or remaps memory of the probe, and a call that makes a child process is
    // given no memory to share with it.
    Errno::result(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}
