//! Call numbers that libc does not name on every architecture, and calls that only the oldest
//! architectures have.

use libc::c_long;

/// Numbers from 424 on are the same everywhere.
pub(crate) const FCHMODAT2: c_long = 452;
pub(crate) const SETXATTRAT: c_long = 463;
pub(crate) const REMOVEXATTRAT: c_long = 466;
pub(crate) const OPEN_TREE_ATTR: c_long = 467;
pub(crate) const FILE_SETATTR: c_long = 469;

/// The number of a call that this architecture has.
pub(crate) fn by_name(name: &str) -> Option<c_long> {
    Some(match name {
        "fchmod" => libc::SYS_fchmod,
        "fchmodat" => libc::SYS_fchmodat,
        "fchmodat2" => FCHMODAT2,
        "fchown" => libc::SYS_fchown,
        "fchownat" => libc::SYS_fchownat,
        "fremovexattr" => libc::SYS_fremovexattr,
        "fsetxattr" => libc::SYS_fsetxattr,
        "linkat" => libc::SYS_linkat,
        "lremovexattr" => libc::SYS_lremovexattr,
        "lsetxattr" => libc::SYS_lsetxattr,
        "mkdirat" => libc::SYS_mkdirat,
        "mknodat" => libc::SYS_mknodat,
        "openat" => libc::SYS_openat,
        "openat2" => libc::SYS_openat2,
        "removexattr" => libc::SYS_removexattr,
        "removexattrat" => REMOVEXATTRAT,
        "renameat" => libc::SYS_renameat,
        "renameat2" => libc::SYS_renameat2,
        "setxattr" => libc::SYS_setxattr,
        "setxattrat" => SETXATTRAT,
        "symlinkat" => libc::SYS_symlinkat,
        "truncate" => libc::SYS_truncate,
        "unlinkat" => libc::SYS_unlinkat,
        "utimensat" => libc::SYS_utimensat,
        _ => return legacy(name),
    })
}

/// The number of a call that newer architectures dropped in favour of its `at` form.
#[cfg(target_arch = "x86_64")]
pub(crate) fn legacy(name: &str) -> Option<c_long> {
    Some(match name {
        "chmod" => libc::SYS_chmod,
        "chown" => libc::SYS_chown,
        "creat" => libc::SYS_creat,
        "futimesat" => libc::SYS_futimesat,
        "iopl" => libc::SYS_iopl,
        "lchown" => libc::SYS_lchown,
        "link" => libc::SYS_link,
        "mkdir" => libc::SYS_mkdir,
        "mknod" => libc::SYS_mknod,
        "open" => libc::SYS_open,
        "rename" => libc::SYS_rename,
        "rmdir" => libc::SYS_rmdir,
        "symlink" => libc::SYS_symlink,
        "unlink" => libc::SYS_unlink,
        "utime" => libc::SYS_utime,
        "utimes" => libc::SYS_utimes,
        _ => return None,
    })
}

/// The number of a call that newer architectures dropped in favour of its `at` form.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn legacy(_: &str) -> Option<c_long> {
    None
}
