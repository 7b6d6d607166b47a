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
