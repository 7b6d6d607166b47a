//! Call numbers that libc does not name on every architecture, and calls that only the oldest
//! architectures have.

use libc::c_long;

/// Numbers from 424 on are the same everywhere.
pub(crate) const FCHMODAT2: c_long = 452;
pub(crate) const SETXATTRAT: c_long = 463;
pub(crate) const OPEN_TREE_ATTR: c_long = 467;
pub(crate) const FILE_SETATTR: c_long = 469;

/// The number of a call that newer architectures dropped in favour of its `at` form.
#[cfg(target_arch = "x86_64")]
pub(crate) fn legacy(name: &str) -> Option<c_long> {
    Some(match name {
        "chmod" => libc::SYS_chmod,
        "creat" => libc::SYS_creat,
        "iopl" => libc::SYS_iopl,
        "link" => libc::SYS_link,
        "mkdir" => libc::SYS_mkdir,
        "mknod" => libc::SYS_mknod,
        "open" => libc::SYS_open,
        "rename" => libc::SYS_rename,
        "unlink" => libc::SYS_unlink,
        _ => return None,
    })
}

/// The number of a call that newer architectures dropped in favour of its `at` form.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn legacy(_: &str) -> Option<c_long> {
    None
}
