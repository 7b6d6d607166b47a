//! What a trapped call is after: its arguments read once, and nothing looked up yet.

use nix::errno::Errno;
use nix::libc;
use serde::{Deserialize, Serialize};

use super::caller::Caller;

/// A call that names one or two files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) what: What,
    pub(crate) target: Target,
    /// The new name of a rename or link.
    pub(crate) second: Option<Target>,
}

/// What is to be done to the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Open it, with these flags of open(2).
    Open(i32),
    MakeDirectory,
    /// Make a node of this mode; device numbers decide nothing.
    MakeNode(u32),
    Symlink,
    Bind,
    Link,
    Unlink,
    RemoveDirectory,
    /// Rename it, with these flags of renameat2(2).
    Rename(u32),
    Truncate,
    Change(Change),
}

/// A change of metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    Mode(u32),
    Owner(u32, u32),
    /// Access and modification time, both now when absent.
    Times(Option<[(i64, i64); 2]>),
    SetAttribute {
        name: Vec<u8>,
        value: Vec<u8>,
        flags: i32,
    },
    RemoveAttribute(Vec<u8>),
}

/// A file as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Where a relative path begins.
    pub(crate) base: Base,
    /// The path; empty where the base itself is meant.
    pub(crate) path: Vec<u8>,
    /// Whether a symbolic link at its end is followed.
    pub(crate) follow: bool,
}

/// Where a relative path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Base {
    WorkingDirectory,
    Descriptor(i32),
}

impl What {
    /// The operation, as the facts have it.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::MakeDirectory => "mkdir",
            Self::MakeNode(_) => "mknod",
            Self::Symlink => "symlink",
            Self::Bind => "bind",
            Self::Link => "link",
            Self::Unlink => "unlink",
            Self::RemoveDirectory => "rmdir",
            Self::Rename(_) => "rename",
            Self::Truncate => "truncate",
            Self::Change(Change::Mode(_)) => "chmod",
            Self::Change(Change::Owner(..)) => "chown",
            Self::Change(Change::Times(_)) => "utimes",
            Self::Change(Change::SetAttribute { .. }) => "setxattr",
            Self::Change(Change::RemoveAttribute(_)) => "removexattr",
        }
    }
}

/// The longest value of an extended attribute that fits a message to the worker.
const VALUE_MAX: usize = 8 * 1024;
const UTIME_NOW: i64 = libc::UTIME_NOW;
/// openat2(2): the size of the first version of `struct open_how`, whose first field are the flags.
const OPEN_HOW: usize = 24;

impl Attempt {
    /// Decodes a call by its kernel name; none for one that names no file.
    ///
    /// # Errors
    ///
    /// The errno of reading the caller's memory: the kernel will find the same, or `EPERM` and
    /// `ESRCH` when only we may not read it.
    pub(crate) fn decode(
        name: &str,
        arguments: &[u64; 6],
        caller: &Caller<'_>,
    ) -> Result<Option<Self>, Errno> {
        let [a0, a1, a2, a3, a4, _] = *arguments;
        let at = |directory: u64, pointer: u64, follow: bool| -> Result<Target, Errno> {
            Ok(Target { base: base(directory), path: caller.path(pointer)?, follow })
        };
        let here = |pointer, follow| at(low(libc::AT_FDCWD), pointer, follow);
        let one = |what, target| Ok(Some(Self { what, target, second: None }));
        let two = |what, target, second| Ok(Some(Self { what, target, second: Some(second) }));
        let itself = |descriptor: u64| Target {
            base: Base::Descriptor(int(descriptor)),
            path: Vec::new(),
            follow: true,
        };
        // The flags of the *at calls, and what they make of an empty path.
        let flagged = |directory, pointer: u64, flags: u64| -> Result<Option<Target>, Errno> {
            let flags = int(flags);
            let target = at(directory, pointer, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
            Ok((!target.path.is_empty() || flags & libc::AT_EMPTY_PATH != 0).then_some(target))
        };
        let change = |change, target: Option<Target>| {
            Ok(target.map(|target| Self { what: What::Change(change), target, second: None }))
        };
        let open = |flags: i32, directory, pointer| {
            let creates_new =
                flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
            let follow = flags & libc::O_NOFOLLOW == 0 && !creates_new;
            one(What::Open(flags), at(directory, pointer, follow)?)
        };
        let attempt = match name {
            "open" => open(int(a1), low(libc::AT_FDCWD), a0),
            "openat" => open(int(a2), a0, a1),
            "creat" => {
                open(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, low(libc::AT_FDCWD), a0)
            }
            "openat2" => {
                if a3 < OPEN_HOW as u64 {
                    return Ok(None);
                }
                let how = caller.words::<3>(a2)?;
                match i32::try_from(how[0]) {
                    // Flags for resolving are rare, and refuse more than is judged here.
                    Ok(flags) if writes(flags) => open(flags, a0, a1),
                    _ => Ok(None),
                }
            }
            "mkdir" => one(What::MakeDirectory, here(a0, false)?),
            "mkdirat" => one(What::MakeDirectory, at(a0, a1, false)?),
            "mknod" => one(What::MakeNode(unsigned(a1)), here(a0, false)?),
            "mknodat" => one(What::MakeNode(unsigned(a2)), at(a0, a1, false)?),
            "symlink" => one(What::Symlink, here(a1, false)?),
            "symlinkat" => one(What::Symlink, at(a1, a2, false)?),
            "link" => two(What::Link, here(a0, false)?, here(a1, false)?),
            "linkat" => {
                let follow = int(a4) & libc::AT_SYMLINK_FOLLOW != 0;
                let old = at(a0, a1, follow)?;
                if old.path.is_empty() && int(a4) & libc::AT_EMPTY_PATH == 0 {
                    return Ok(None);
                }
                two(What::Link, old, at(a2, a3, false)?)
            }
            "unlink" => one(What::Unlink, here(a0, false)?),
            "rmdir" => one(What::RemoveDirectory, here(a0, false)?),
            "unlinkat" => {
                let directory = int(a2) & libc::AT_REMOVEDIR != 0;
                let what = if directory { What::RemoveDirectory } else { What::Unlink };
                one(what, at(a0, a1, false)?)
            }
            "rename" => two(What::Rename(0), here(a0, false)?, here(a1, false)?),
            "renameat" => two(What::Rename(0), at(a0, a1, false)?, at(a2, a3, false)?),
            "renameat2" => two(What::Rename(unsigned(a4)), at(a0, a1, false)?, at(a2, a3, false)?),
            "truncate" if a1.cast_signed() < 0 => Ok(None),
            "truncate" => one(What::Truncate, here(a0, true)?),
            "chmod" => change(Change::Mode(unsigned(a1)), Some(here(a0, true)?)),
            "fchmod" => change(Change::Mode(unsigned(a1)), Some(itself(a0))),
            "fchmodat" => change(Change::Mode(unsigned(a2)), Some(at(a0, a1, true)?)),
            "fchmodat2" => change(Change::Mode(unsigned(a2)), flagged(a0, a1, a3)?),
            "chown" => change(Change::Owner(unsigned(a1), unsigned(a2)), Some(here(a0, true)?)),
            "lchown" => change(Change::Owner(unsigned(a1), unsigned(a2)), Some(here(a0, false)?)),
            "fchown" => change(Change::Owner(unsigned(a1), unsigned(a2)), Some(itself(a0))),
            "fchownat" => change(Change::Owner(unsigned(a2), unsigned(a3)), flagged(a0, a1, a4)?),
            "utime" => {
                let times = match a1 {
                    0 => None,
                    pointer => Some(caller.words::<2>(pointer)?.map(|s| (s.cast_signed(), 0))),
                };
                change(Change::Times(times), Some(here(a0, true)?))
            }
            "utimes" => change(Change::Times(timevals(caller, a1)?), Some(here(a0, true)?)),
            "futimesat" => {
                let target = if a1 == 0 { itself(a0) } else { at(a0, a1, true)? };
                change(Change::Times(timevals(caller, a2)?), Some(target))
            }
            "utimensat" => {
                let times = timespecs(caller, a2)?;
                let target = if a1 == 0 { Some(itself(a0)) } else { flagged(a0, a1, a3)? };
                change(Change::Times(times), target)
            }
            "setxattr" => change(set_attribute(caller, arguments)?, Some(here(a0, true)?)),
            "lsetxattr" => change(set_attribute(caller, arguments)?, Some(here(a0, false)?)),
            "fsetxattr" => change(set_attribute(caller, arguments)?, Some(itself(a0))),
            "removexattr" => {
                change(Change::RemoveAttribute(caller.path(a1)?), Some(here(a0, true)?))
            }
            "lremovexattr" => {
                change(Change::RemoveAttribute(caller.path(a1)?), Some(here(a0, false)?))
            }
            "fremovexattr" => change(Change::RemoveAttribute(caller.path(a1)?), Some(itself(a0))),
            _ => Ok(None),
        };
        attempt.map(|attempt| attempt.filter(Self::can_succeed))
    }

    /// Whether the names are any at all.
    fn can_succeed(&self) -> bool {
        let empty = |target: &Target| target.path.is_empty();
        match &self.what {
            What::Change(_) => true,
            What::Link => !self.second.as_ref().is_some_and(empty),
            _ => !empty(&self.target) && !self.second.as_ref().is_some_and(empty),
        }
    }
}

/// Whether a file is opened to write or to create.
pub(super) fn writes(flags: i32) -> bool {
    flags & libc::O_PATH == 0
        && flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0
}

/// Whether a call changes metadata.
pub(super) fn is_change(name: &str) -> bool {
    name.ends_with("xattr")
        || name.contains("chmod")
        || name.contains("chown")
        || name.contains("utime")
}

fn base(descriptor: u64) -> Base {
    match int(descriptor) {
        libc::AT_FDCWD => Base::WorkingDirectory,
        number => Base::Descriptor(number),
    }
}

fn set_attribute(caller: &Caller<'_>, arguments: &[u64; 6]) -> Result<Change, Errno> {
    let [_, name, value, size, flags, _] = *arguments;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > VALUE_MAX {
        return Err(Errno::E2BIG);
    }
    Ok(Change::SetAttribute {
        name: caller.path(name)?,
        value: caller.bytes(value, size)?,
        flags: int(flags),
    })
}

fn timespecs(caller: &Caller<'_>, pointer: u64) -> Result<Option<[(i64, i64); 2]>, Errno> {
    if pointer == 0 {
        return Ok(None);
    }
    let [a, b, c, d] = caller.words::<4>(pointer)?.map(u64::cast_signed);
    let both_now = b == UTIME_NOW && d == UTIME_NOW;
    Ok((!both_now).then_some([(a, b), (c, d)]))
}

fn timevals(caller: &Caller<'_>, pointer: u64) -> Result<Option<[(i64, i64); 2]>, Errno> {
    if pointer == 0 {
        return Ok(None);
    }
    let [a, b, c, d] = caller.words::<4>(pointer)?.map(u64::cast_signed);
    Ok(Some([(a, b.saturating_mul(1000)), (c, d.saturating_mul(1000))]))
}

/// An argument that the kernel takes as an int.
#[expect(clippy::cast_possible_truncation, reason = "the kernel cuts it off as well")]
pub(super) fn int(argument: u64) -> i32 {
    (argument as u32).cast_signed()
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel cuts it off as well")]
fn unsigned(argument: u64) -> u32 {
    argument as u32
}

/// An int as an argument.
fn low(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}
