//! What the running kernel has, asked without the program under test.

use nix::errno::Errno;
use nix::libc;

/// Landlock's ABI, or the errno with which the kernel says that it has none.
pub(crate) fn landlock() -> Result<u32, Errno> {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call takes no structure, and changes nothing.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    Errno::result(abi).map(|abi| u32::try_from(abi).unwrap_or(u32::MAX))
}

/// Whether the kernel is this release or a later one.
pub(crate) fn at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().ok());
    let running = (numbers.next().flatten(), numbers.next().flatten());
    matches!(running, (Some(a), Some(b)) if (a, b) >= (major, minor))
}

/// Whether a call can be made at all: an old kernel and a container's filter answer ENOSYS.
pub(crate) fn has_call(number: i64) -> bool {
    // SAFETY: the descriptor is none, so whatever the call is, it fails before it does anything; the
    // pointers are null.
    let answer = unsafe { libc::syscall(number, -1_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64) };
    Errno::result(answer) != Err(Errno::ENOSYS)
}
