//! The mount table of a process: proc_pid_mountinfo(5).

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use crate::error::errno_of;
use crate::walk::open_node;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The number by which /proc/self/fdinfo names it too.
    pub(crate) id: u64,
    /// The file system: its major and minor device number.
    pub(crate) device: String,
    /// What of the file system it shows.
    pub(crate) root: PathBuf,
    /// Where it is attached.
    pub(crate) point: PathBuf,
    /// Its own options, such as `rw,nosuid,relatime`.
    pub(crate) options: String,
    /// The kind of file system.
    pub(crate) kind: String,
}

impl Mount {
    /// Whether it is read-only itself, whatever its file system is.
    pub(crate) fn read_only(&self) -> bool {
        self.options.split(',').any(|option| option == "ro")
    }

    /// Whether writing to it changes the kernel's or a device's state rather than files.
    pub(crate) fn is_kernel_interface(&self) -> bool {
        KERNEL_INTERFACES.contains(&self.kind.as_str())
    }
}

/// File systems that are interfaces of the kernel. A writable root may hold such a mount (the
/// /proc of a system image, say); it stays read-only.
const KERNEL_INTERFACES: [&str; 18] = [
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// The calling process's mounts, in the order of the table.
///
/// # Errors
///
/// Those of reading /proc/self/mountinfo.
pub(crate) fn read() -> std::io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|table| parse(&table))
}

pub(crate) fn parse(table: &[u8]) -> Vec<Mount> {
    table.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda rw": the optional fields end at
    // a lone dash.
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?;
    let root = fields.next()?;
    let point = fields.next()?;
    let options = fields.next()?;
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount {
        id,
        device: String::from_utf8_lossy(device).into_owned(),
        root: unescape(root).into(),
        point: unescape(point).into(),
        options: String::from_utf8_lossy(options).into_owned(),
        kind: String::from_utf8_lossy(kind).into_owned(),
    })
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        if let (b'\\', Some(byte)) = (first, tail.get(..3).and_then(octal)) {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The mount on which an open file lies: proc_pid_fdinfo(5) (Linux 3.15).
///
/// # Errors
///
/// Those of reading /proc/self/fdinfo; `InvalidData` when it does not say.
pub(crate) fn of_file(file: &impl AsRawFd) -> std::io::Result<u64> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    info.lines()
        .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
        .ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// The mount that holds `path`, which must be canonical. Only the kernel knows: a mount on a parent
/// covers the deeper ones that were there before it.
pub(crate) fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let id = of_name(path).ok()?;
    mounts.iter().find(|mount| mount.id == id)
}

/// The mount on which a canonical name's file lies.
fn of_name(name: &Path) -> std::io::Result<u64> {
    let file = match open_node(name) {
        // Linux 5.6 brought openat2, and a command of ours has none.
        Err(Errno::ENOSYS) => {
            open(name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
        }
        opened => opened,
    };
    of_file(&file?)
}

/// Whether a name leads to the mount, and not to one that covers it. Where this caller cannot tell,
/// it is taken to.
pub(crate) fn leads_to(name: &Path, mount: &Mount) -> bool {
    match of_name(name) {
        Ok(id) => id == mount.id,
        Err(error) => !matches!(errno_of(&error), Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP),
    }
}

/// Every mount below a place, by its mount point. `path` must be canonical.
pub(crate) fn points_below<'a>(
    mounts: &'a [Mount],
    path: &'a Path,
) -> impl Iterator<Item = &'a Mount> {
    mounts.iter().filter(move |mount| {
        mount.point.starts_with(path) && mount.point != path && leads_to(&mount.point, mount)
    })
}

/// Whether every mount outside the writable roots is read-only, as in a nested run.
pub(crate) fn read_only_outside(writable: &[&Path]) -> bool {
    let Ok(mounts) = read() else { return false };
    mounts
        .iter()
        .all(|mount| mount.read_only() || writable.iter().any(|root| mount.point.starts_with(root)))
}

/// Mount points of kernel interfaces below `root`, relative to it.
pub(crate) fn interfaces_below(mounts: &[Mount], root: &Path) -> Vec<OsString> {
    points_below(mounts, root)
        .filter(|mount| mount.is_kernel_interface())
        .filter_map(|mount| mount.point.strip_prefix(root).ok())
        .map(|relative| OsStr::from_bytes(relative.as_os_str().as_bytes()).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        40 27 0:30 / /w rw,nosuid shared:5 master:2 - tmpfs tmpfs rw\n\
        41 40 0:21 / /w/image/proc rw - proc proc rw\n\
        42 40 0:31 / /w/with\\040blank rw - tmpfs tmpfs rw\n";

    #[test]
    fn optional_fields_and_escapes_are_read() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 4);
        assert_eq!((mounts[1].id, mounts[1].options.as_str()), (40, "rw,nosuid"));
        assert_eq!(mounts[1].kind, "tmpfs");
        assert_eq!(mounts[3].point, Path::new("/w/with blank"));
    }

    #[test]
    fn the_kernel_tells_the_holding_mount() {
        let mounts = read().expect("a table");
        let kind = |path| holding(&mounts, Path::new(path)).map(|mount| mount.kind.as_str());
        assert_eq!(kind("/proc/stat"), Some("proc"));
        assert_ne!(kind("/etc/passwd"), Some("proc"));
        assert_eq!(kind("/nonexistent"), None);
    }

    #[test]
    fn kernel_interfaces_below_a_root_are_found() {
        let mounts = read().expect("a table");
        assert!(interfaces_below(&mounts, Path::new("/")).contains(&"proc".into()));
        assert!(!interfaces_below(&mounts, Path::new("/proc")).contains(&"".into()));
    }
}
