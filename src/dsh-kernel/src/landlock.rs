//! The running kernel's Landlock ABI, which the `landlock` crate keeps to itself.

use nix::Result;

const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;

/// The Landlock ABI version of the running kernel: 1 or more.
///
/// # Errors
///
/// `ENOSYS`: not built in. `EOPNOTSUPP`: built in but not enabled at boot. See
/// landlock_create_ruleset(2).
pub fn abi() -> Result<u32> {
    // SAFETY: with a null attribute of size 0 and the version flag the call reads no memory.
    let version = super::checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    })?;
    Ok(u32::try_from(version).unwrap_or(0))
}
