//! Descriptors 0, 1 and 2: what each is, and what has to happen for it not to pierce the layers.
//!
//! An open file is a way past every path-based layer: with a host file as standard input, fchmod,
//! futimens and a re-open of /proc/self/fd/0 change it (seen on Linux 6.18). So what is not the
//! caller's grant is opened again through the sandbox's own, read-only mounts.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use dsh_facts::Network;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::socket::{SockType, UnixAddr, getpeername, getsockopt, sockopt};
use nix::sys::stat::{FileStat, SFlag, fstat, major, minor};
use nix::sys::statfs::{FsType, fstatfs};
use nix::unistd::{Whence, isatty, lseek};
use serde::{Deserialize, Serialize};

use crate::error::RequestError;

/// What happens to one standard descriptor on its way inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// Passed as it is: a pipe, a socket, or, in a run without mounts of its own, whatever would be
    /// the same file opened again.
    Pass,
    /// Passed as it is, because the caller opened this file for the command to write.
    Grant {
        /// The file's name when the run began.
        path: OsString,
    },
    /// A file to read, or a named pipe: opened again inside.
    Reopen {
        /// The file's name.
        path: OsString,
        /// Its device, to compare.
        device: u64,
        /// Its inode, to compare.
        inode: u64,
        /// open(2) flags.
        flags: i32,
        /// Where reading goes on; none where there is no such thing.
        offset: Option<i64>,
    },
    /// A file to read that cannot be opened again (deleted, or out of reach): its content comes
    /// through a pipe.
    Pump,
    /// A device that the sandbox has too, by its name in /dev.
    Device {
        /// Such as `null`.
        name: String,
        /// open(2) flags.
        flags: i32,
    },
    /// The caller's terminal, opened again as /dev/console.
    Terminal {
        /// open(2) flags.
        flags: i32,
    },
}

impl Stdio {
    /// Whether the file itself is the command's to write and to change, and to open again: what the
    /// caller handed over, and a terminal that passes as it is (echo >/dev/stderr).
    pub(crate) fn may_be_written(&self, descriptor: impl AsFd) -> bool {
        match self {
            Self::Grant { .. } => true,
            Self::Pass => isatty(descriptor) == Ok(true),
            _ => false,
        }
    }
}

/// The three descriptors of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdioPlan {
    /// Standard input, output, error.
    pub descriptors: [Stdio; 3],
    /// The name of the caller's terminal, where one of them is it.
    pub terminal: Option<OsString>,
}

impl StdioPlan {
    /// Everything passed as it is.
    pub(crate) const PASS: Self =
        Self { descriptors: [Stdio::Pass, Stdio::Pass, Stdio::Pass], terminal: None };

    /// The descriptors that are the caller's grants.
    pub(crate) fn grants(&self) -> impl Iterator<Item = (i32, &OsString)> {
        (0..).zip(&self.descriptors).filter_map(|(number, stdio)| match stdio {
            Stdio::Grant { path } => Some((number, path)),
            _ => None,
        })
    }
}

/// Device numbers that mean the same everywhere (Documentation/admin-guide/devices.txt), and the
/// sandbox's own nodes for them.
const DEVICES: [(u64, u64, &str); 5] =
    [(1, 3, "null"), (1, 5, "zero"), (1, 7, "full"), (1, 8, "random"), (1, 9, "urandom")];

/// Looks at the three descriptors.
///
/// `own_mounts` says whether the sandbox has a view of its own to open things in.
pub(crate) fn plan(
    descriptors: [BorrowedFd<'_>; 3],
    own_mounts: bool,
    network: Network,
) -> Result<StdioPlan, RequestError> {
    let mut result = StdioPlan::PASS;
    for (slot, (number, descriptor)) in result.descriptors.iter_mut().zip((0..).zip(descriptors)) {
        *slot = plan_one(number, descriptor, own_mounts, network, &mut result.terminal)?;
    }
    Ok(result)
}

fn plan_one(
    number: i32,
    descriptor: BorrowedFd<'_>,
    own_mounts: bool,
    network: Network,
    terminal: &mut Option<OsString>,
) -> Result<Stdio, RequestError> {
    let refuse = |what, remedy| Err(RequestError::Stdio { descriptor: number, what, remedy });
    let (Ok(stat), Ok(flags)) = (fstat(descriptor), fcntl(descriptor, FcntlArg::F_GETFL)) else {
        return refuse("closed", "/dev/null");
    };
    if flags & libc::O_PATH != 0 {
        return refuse("a path descriptor (O_PATH)", "a file, a pipe or /dev/null");
    }
    let access = flags & libc::O_ACCMODE;
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFDIR => refuse("a directory", "a file, a pipe or /dev/null"),
        SFlag::S_IFBLK => refuse("a block device", "a file, a pipe or /dev/null"),
        SFlag::S_IFREG if number > 0 && access != libc::O_RDONLY => {
            Ok(Stdio::Grant { path: name_of(descriptor).unwrap_or_default() })
        }
        // Without mounts of its own too: opened again only to read, it cannot be written.
        SFlag::S_IFREG if own_mounts || access != libc::O_RDONLY => Ok(reopen(descriptor, &stat)),
        SFlag::S_IFIFO if own_mounts && is_named(descriptor) => {
            match named_pipe(descriptor, &stat, flags) {
                Some(reopen) => Ok(reopen),
                None => refuse("a named pipe that cannot be opened again", "an unnamed pipe"),
            }
        }
        SFlag::S_IFCHR if isatty(descriptor) != Ok(true) && own_device(&stat).is_none() => {
            refuse("a device that the sandbox does not have", "a file, a pipe or /dev/null")
        }
        SFlag::S_IFCHR if own_mounts => Ok(device(descriptor, &stat, access, terminal)),
        SFlag::S_IFSOCK if network != Network::Host && !stays_connected(descriptor) => refuse(
            "a socket that can be connected to others, in the host's network",
            "a pipe, a connected unix stream socket, or --network host",
        ),
        SFlag::S_IFREG | SFlag::S_IFCHR | SFlag::S_IFIFO | SFlag::S_IFSOCK => Ok(Stdio::Pass),
        _ => refuse("neither a file, a pipe, a socket nor a terminal", "a pipe or /dev/null"),
    }
}

/// A file to read, if its name still leads to it; else its content.
fn reopen(descriptor: BorrowedFd<'_>, stat: &FileStat) -> Stdio {
    let offset = lseek(descriptor, 0, Whence::SeekCur);
    match (name_of(descriptor), offset) {
        (Some(path), Ok(offset)) if leads_to(&path, stat, libc::O_RDONLY) => Stdio::Reopen {
            path,
            device: stat.st_dev,
            inode: stat.st_ino,
            flags: libc::O_RDONLY,
            offset: Some(offset),
        },
        _ => Stdio::Pump,
    }
}

/// Whether a socket can only ever talk to whom it talks now: a connected unix stream. Any other can
/// be connected anew, and lives in the network in which it was made (AF_UNSPEC frees even a
/// connected TCP socket).
fn stays_connected(descriptor: BorrowedFd<'_>) -> bool {
    let kind = getsockopt(&descriptor, sockopt::SockType);
    let stream = matches!(kind, Ok(SockType::Stream | SockType::SeqPacket));
    stream && getpeername::<UnixAddr>(descriptor.as_raw_fd()).is_ok()
}

/// Whether a pipe has a name on the host, with a mode and an owner that fchmod would change.
fn is_named(descriptor: BorrowedFd<'_>) -> bool {
    !fstatfs(descriptor).is_ok_and(|fs| fs.filesystem_type() == PIPE_FILE_SYSTEM)
}

/// PIPEFS_MAGIC of linux/magic.h: the file system of unnamed pipes.
const PIPE_FILE_SYSTEM: FsType = FsType(0x5049_5045);

/// A named pipe, if its name still leads to it.
fn named_pipe(descriptor: BorrowedFd<'_>, stat: &FileStat, flags: i32) -> Option<Stdio> {
    let path = name_of(descriptor).filter(|path| leads_to(path, stat, flags))?;
    let flags = flags & (libc::O_ACCMODE | libc::O_NONBLOCK);
    Some(Stdio::Reopen { path, device: stat.st_dev, inode: stat.st_ino, flags, offset: None })
}

/// The name of the sandbox's own node of a device.
fn own_device(stat: &FileStat) -> Option<&'static str> {
    let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
    DEVICES.iter().find(|known| (known.0, known.1) == (major, minor)).map(|known| known.2)
}

fn device(
    descriptor: BorrowedFd<'_>,
    stat: &FileStat,
    access: i32,
    terminal: &mut Option<OsString>,
) -> Stdio {
    if let Some(name) = own_device(stat) {
        return Stdio::Device { name: name.to_owned(), flags: access };
    }
    let flags = access | libc::O_NOCTTY;
    match name_of(descriptor) {
        // One terminal is enough: a second one keeps its descriptor.
        Some(path)
            if isatty(descriptor) == Ok(true)
                && terminal.as_ref().is_none_or(|known| *known == path)
                && leads_to(&path, stat, flags) =>
        {
            *terminal = Some(path);
            Stdio::Terminal { flags }
        }
        _ => Stdio::Pass,
    }
}

/// The name under which the kernel knows an open file: proc_pid_fd(5).
fn name_of(descriptor: BorrowedFd<'_>) -> Option<OsString> {
    std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).ok().map(Into::into)
}

/// Whether opening the name gives the very same file.
fn leads_to(path: &OsString, stat: &FileStat, flags: i32) -> bool {
    let opened = OpenOptions::new()
        .read(flags & libc::O_ACCMODE != libc::O_WRONLY)
        .write(flags & libc::O_ACCMODE != libc::O_RDONLY)
        .custom_flags(OFlag::O_NONBLOCK.bits() | libc::O_NOCTTY | libc::O_NOFOLLOW)
        .open(path);
    opened.and_then(|file| file.metadata()).is_ok_and(|found| {
        let kind = found.file_type();
        let same_kind = kind.is_file() || kind.is_char_device() || kind.is_fifo();
        same_kind && found.dev() == stat.st_dev && found.ino() == stat.st_ino
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn one(number: usize, file: &File) -> Result<Stdio, RequestError> {
        one_of(number, file, true)
    }

    fn one_of(number: usize, file: &File, own_mounts: bool) -> Result<Stdio, RequestError> {
        let null = File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
        let mut descriptors = [null.as_fd(), null.as_fd(), null.as_fd()];
        descriptors[number] = file.as_fd();
        plan(descriptors, own_mounts, Network::Loopback)
            .map(|plan| plan.descriptors[number].clone())
    }

    #[test]
    fn a_directory_and_a_path_descriptor_are_refused() {
        let directory = File::open("/").expect("/");
        let error = one(0, &directory).expect_err("a directory");
        assert!(error.to_string().starts_with("standard input is a directory"), "{error}");
        let path = File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open("/etc/passwd")
            .expect("O_PATH");
        assert!(one(2, &path).is_err());
    }

    #[test]
    fn a_file_to_read_is_opened_again_or_pumped_when_deleted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let reader = File::open(file.path()).expect("open");
        assert!(matches!(one(0, &reader), Ok(Stdio::Reopen { offset: Some(0), .. })));
        drop(file);
        assert_eq!(one(0, &reader), Ok(Stdio::Pump));
    }

    #[test]
    fn a_file_to_write_is_a_grant_on_1_and_2_only() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(matches!(one(1, file.as_file()), Ok(Stdio::Grant { .. })));
        assert!(matches!(one(0, file.as_file()), Ok(Stdio::Reopen { .. })));
    }

    #[test]
    fn without_mounts_a_file_that_could_be_written_is_opened_again_to_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let again = one_of(0, file.as_file(), false);
        assert!(matches!(again, Ok(Stdio::Reopen { flags: libc::O_RDONLY, .. })), "{again:?}");
        let reader = File::open(file.path()).expect("open");
        assert_eq!(one_of(0, &reader, false), Ok(Stdio::Pass));
    }

    #[test]
    fn a_named_pipe_is_opened_again_and_an_unnamed_one_passes() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = directory.path().join("pipe");
        nix::unistd::mkfifo(&name, nix::sys::stat::Mode::S_IRWXU).expect("mkfifo");
        let named = File::options().read(true).write(true).open(&name).expect("open");
        assert!(matches!(one(0, &named), Ok(Stdio::Reopen { offset: None, .. })));
        std::fs::remove_file(&name).expect("unlink");
        assert!(one(0, &named).is_err(), "its name leads nowhere");
        let (reader, _writer) = std::io::pipe().expect("pipe");
        assert_eq!(one(0, &File::from(std::os::fd::OwnedFd::from(reader))), Ok(Stdio::Pass));
    }

    #[test]
    fn of_sockets_only_a_connected_unix_stream_passes() {
        let (stream, _peer) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let stream = File::from(std::os::fd::OwnedFd::from(stream));
        assert_eq!(one(0, &stream), Ok(Stdio::Pass));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let tcp = std::net::TcpStream::connect(listener.local_addr().expect("an address"));
        let tcp = File::from(std::os::fd::OwnedFd::from(tcp.expect("connected")));
        assert!(one(0, &tcp).is_err());
        let (datagram, _peer) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
        assert!(one(0, &File::from(std::os::fd::OwnedFd::from(datagram))).is_err());
    }

    #[test]
    fn a_device_that_the_sandbox_has_becomes_its_own() {
        let null = File::open("/dev/null").expect("/dev/null");
        let own = Stdio::Device { name: "null".into(), flags: libc::O_RDONLY };
        assert_eq!(one(0, &null), Ok(own));
    }
}
