//! The process whose call waits: its memory, its descriptors, and who it is.
//!
//! All of it may have gone, or belong to another process by now: whoever uses what was read to
//! allow something asks first whether the call still waits.

use std::ffi::{OsStr, OsString};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::{Pid, read};
use serde::{Deserialize, Serialize};

use super::attempt::Base;

/// The longest path that the kernel takes, with its NUL.
const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;
/// Most paths are shorter, and a page is dear to copy.
const FIRST: usize = 256;

/// One thread of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    /// Its number, in the observer's pid namespace.
    pub(crate) thread: i32,
    /// A /proc that shows it under this number.
    pub(crate) proc: BorrowedFd<'a>,
}

/// Who a thread is, for the kernel's checks and for the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// User id for access to files.
    pub(crate) uid: u32,
    /// Group id for the same.
    pub(crate) gid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// Effective capabilities, as bits.
    pub(crate) capabilities: u64,
}

/// Signals of a thread, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// Those that wait for it, and that it takes.
    pub(crate) own: u64,
    /// Those that wait for any thread of its process, and that it takes.
    pub(crate) shared: u64,
    /// Those that it neither blocks nor ignores.
    pub(crate) takes: u64,
}

/// The numbers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// The process, in the observer's pid namespace.
    pub(crate) process: i32,
    /// The process, as the command sees it.
    pub(crate) process_inside: i32,
    /// The thread, as the command sees it.
    pub(crate) thread_inside: i32,
}

impl Caller<'_> {
    /// A string, without its NUL; a path too long for the kernel comes as it is, and the kernel
    /// refuses it.
    ///
    /// # Errors
    ///
    /// `EFAULT` for a bad pointer; `EPERM` and `ESRCH` when the memory may not be read or is gone;
    /// `ENAMETOOLONG`.
    pub(crate) fn path(&self, pointer: u64) -> Result<Vec<u8>, Errno> {
        let mut bytes = Vec::new();
        let mut address = usize::try_from(pointer).map_err(|_| Errno::EFAULT)?;
        while bytes.len() < PATH_MAX {
            let to_page_end = PAGE - address % PAGE;
            let wanted = if bytes.is_empty() { FIRST } else { PAGE }.min(to_page_end);
            let part = self.read(address, wanted)?;
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                bytes.extend_from_slice(&part[..end]);
                return if bytes.len() < PATH_MAX { Ok(bytes) } else { Err(Errno::ENAMETOOLONG) };
            }
            address = address.checked_add(part.len()).ok_or(Errno::EFAULT)?;
            bytes.extend_from_slice(&part);
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// This many bytes.
    ///
    /// # Errors
    ///
    /// As [`Caller::path`].
    pub(crate) fn bytes(&self, pointer: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let address = usize::try_from(pointer).map_err(|_| Errno::EFAULT)?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.read(address, length)?;
        if bytes.len() == length { Ok(bytes) } else { Err(Errno::EFAULT) }
    }

    /// This many machine words.
    ///
    /// # Errors
    ///
    /// As [`Caller::path`].
    pub(crate) fn words<const N: usize>(&self, pointer: u64) -> Result<[u64; N], Errno> {
        let bytes = self.bytes(pointer, N * 8)?;
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::EFAULT)?);
        }
        Ok(words)
    }

    /// process_vm_readv(2), and not /proc/PID/mem, which a process that may not be dumped closes.
    fn read(&self, address: usize, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let there = [RemoteIoVec { base: address, len: length }];
        let count = process_vm_readv(
            Pid::from_raw(self.thread),
            &mut [IoSliceMut::new(&mut bytes)],
            &there,
        )?;
        if count == 0 {
            return Err(Errno::EFAULT);
        }
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Opens where a relative path begins, for its path alone.
    ///
    /// # Errors
    ///
    /// `EBADF` for a descriptor that is not open; `EACCES` when the process may not be looked into.
    pub(crate) fn base(&self, base: Base) -> Result<OwnedFd, Errno> {
        match base {
            Base::WorkingDirectory => self.open("cwd", OFlag::O_PATH),
            Base::Descriptor(number) | Base::OpenFile(number) => {
                self.open(&format!("fd/{number}"), OFlag::O_PATH).map_err(|errno| match errno {
                    Errno::ENOENT => Errno::EBADF,
                    errno => errno,
                })
            }
        }
    }

    /// Whether a descriptor is open with `O_PATH`, proc_pid_fdinfo(5).
    pub(crate) fn is_path_alone(&self, number: i32) -> bool {
        let Ok(text) = self.contents(&format!("fdinfo/{number}")) else { return false };
        String::from_utf8_lossy(&text)
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
            .is_some_and(|flags| flags & libc::O_PATH != 0)
    }

    fn open(&self, name: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        let path = format!("{}/{name}", self.thread);
        openat(self.proc, path.as_str(), flags | OFlag::O_CLOEXEC, Mode::empty())
    }

    /// Who the thread is, proc_pid_status(5).
    ///
    /// # Errors
    ///
    /// `ENOENT` and `ESRCH` when it is gone.
    pub(crate) fn status(&self) -> Result<(Identity, Numbers), Errno> {
        let text = self.contents("status")?;
        let text = String::from_utf8_lossy(&text);
        let mut identity = Identity::default();
        let mut numbers = Numbers::default();
        for line in text.lines() {
            let Some((key, values)) = line.split_once(':') else { continue };
            let mut values = values.split_whitespace();
            let last = |values: std::str::SplitWhitespace<'_>| {
                values.last().and_then(|value| value.parse().ok()).unwrap_or(0)
            };
            match key {
                "Tgid" => numbers.process = last(values),
                "NStgid" => numbers.process_inside = last(values),
                "NSpid" => numbers.thread_inside = last(values),
                // Real, effective, saved, file system.
                "Uid" => identity.uid = values.nth(3).and_then(|id| id.parse().ok()).unwrap_or(0),
                "Gid" => identity.gid = values.nth(3).and_then(|id| id.parse().ok()).unwrap_or(0),
                "Groups" => identity.groups = values.filter_map(|id| id.parse().ok()).collect(),
                "CapEff" => {
                    let bits = values.next().and_then(|bits| u64::from_str_radix(bits, 16).ok());
                    identity.capabilities = bits.unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok((identity, numbers))
    }

    /// The signals that wait for the thread.
    ///
    /// # Errors
    ///
    /// As [`Caller::status`].
    pub(crate) fn signals(&self) -> Result<Signals, Errno> {
        let text = self.contents("status")?;
        let text = String::from_utf8_lossy(&text);
        let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let bits =
            |key: &str| field(key).and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
        let taken = !bits("SigBlk:") & !bits("SigIgn:");
        let ended = field("State:").is_some_and(|state| state.starts_with(['Z', 'X']));
        Ok(Signals {
            own: bits("SigPnd:") & taken,
            shared: bits("ShdPnd:") & taken,
            takes: if ended { 0 } else { taken },
        })
    }

    /// The name of the program, proc_pid_comm(5).
    pub(crate) fn program(&self) -> OsString {
        let mut name = self.contents("comm").unwrap_or_default();
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        OsString::from_vec(name)
    }

    fn contents(&self, name: &str) -> Result<Vec<u8>, Errno> {
        let file = self.open(name, OFlag::O_RDONLY)?;
        let mut bytes = vec![0; PAGE];
        let mut filled = 0;
        loop {
            match read(file.as_fd(), &mut bytes[filled..])? {
                0 => break,
                count => filled += count,
            }
            if filled == bytes.len() {
                bytes.resize(filled + PAGE, 0);
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// The bytes as a name.
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
