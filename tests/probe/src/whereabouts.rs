//! Where a path leads: the directory without links, by the kernel's own account, and the last name.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlink, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

/// More links than the kernel follows.
const MOST_LINKS: usize = 41;

/// Where a relative path begins.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    Current,
    Descriptor(i32),
}

/// The path of a file that exists or is to be made; of the file itself where the last name is none.
pub(crate) fn whereabouts(start: Start, path: &[u8], follow: bool) -> Result<Vec<u8>, Errno> {
    let mut directory = match start {
        _ if path.starts_with(b"/") => open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?,
        Start::Current => open(".", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?,
        Start::Descriptor(number) => {
            let magic = format!("/proc/self/fd/{number}");
            open(&*magic, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?
        }
    };
    let mut path = path.to_vec();
    if path.is_empty() {
        return name_of(&directory);
    }
    for _ in 0..MOST_LINKS {
        let bare = path.iter().rposition(|byte| *byte != b'/').map_or(0, |end| end + 1);
        let (bare, slashes) = path.split_at(bare);
        let at = bare.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (above, last) = bare.split_at(at);
        if matches!(last, b"" | b"." | b"..") {
            return name_of(&below(&directory, &path)?);
        }
        if !above.is_empty() {
            directory = below(&directory, above)?;
        }
        let follow = follow || !slashes.is_empty();
        match readlinkat(&directory, OsStr::from_bytes(last)) {
            // A link of /proc leads to a file, which its text need not name.
            Ok(_) if follow && is_proc(&directory) => {
                return name_of(&below(&directory, last)?);
            }
            Ok(target) if follow => path = [target.as_bytes(), slashes].concat(),
            _ => {
                let mut found = name_of(&directory)?;
                if found.last() != Some(&b'/') {
                    found.push(b'/');
                }
                found.extend_from_slice(last);
                return Ok(found);
            }
        }
    }
    Err(Errno::ELOOP)
}

fn below(directory: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    openat(directory, OsStr::from_bytes(path), flags, Mode::empty())
}

fn is_proc(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC)
}

fn name_of(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let magic = format!("/proc/self/fd/{}", file.as_raw_fd());
    readlink(&*magic).map(OsStringExt::into_vec)
}
