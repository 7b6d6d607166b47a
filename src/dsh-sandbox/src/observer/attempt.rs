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

impl Target {
    /// A path that is taken from the working directory.
    pub(super) fn from_here(path: &[u8], follow: bool) -> Self {
        Self { base: Base::WorkingDirectory, path: path.to_vec(), follow }
    }
}

/// Where a relative path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Base {
    WorkingDirectory,
    Descriptor(i32),
    /// A descriptor by itself, which is of no use where it is open for its path alone.
    OpenFile(i32),
}

impl What {
    /// Whether it is the name that is made or removed, and not what it leads to.
    pub(super) fn takes_a_name(&self) -> bool {
        match self {
            Self::MakeDirectory | Self::MakeNode(_) | Self::Symlink | Self::Bind => true,
            Self::Unlink | Self::RemoveDirectory | Self::Rename(_) => true,
            Self::Open(_) | Self::Link | Self::Truncate | Self::Change(_) => false,
        }
    }

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
/// The longest name of an extended attribute.
const NAME_MAX: usize = 255;
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
            let path = caller.path(pointer)?;
            if path.is_empty() {
                return Err(Errno::ENOENT);
            }
            Ok(Target { base: base(directory), path, follow })
        };
        let here = |pointer, follow| at(low(libc::AT_FDCWD), pointer, follow);
        let one = |what, target| Ok(Some(Self { what, target, second: None }));
        let two = |what, target, second| Ok(Some(Self { what, target, second: Some(second) }));
        let itself = |descriptor: u64| Target {
            base: Base::OpenFile(int(descriptor)),
            path: Vec::new(),
            follow: true,
        };
        // With a flag, an empty path is the descriptor itself.
        let perhaps_at = |directory, pointer, flags: i32, follow| -> Result<Target, Errno> {
            match at(directory, pointer, follow) {
                Err(Errno::ENOENT) if flags & libc::AT_EMPTY_PATH != 0 => {
                    Ok(Target { base: base(directory), path: Vec::new(), follow })
                }
                other => other,
            }
        };
        let flagged = |directory, pointer, flags: u64| -> Result<Target, Errno> {
            let flags = known(int(flags), libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH)?;
            perhaps_at(directory, pointer, flags, flags & libc::AT_SYMLINK_NOFOLLOW == 0)
        };
        // The same, where an empty path means an open file.
        let flagged_file = |directory, pointer, flags: u64| -> Result<Target, Errno> {
            match flagged(directory, pointer, flags) {
                Ok(target) if target.path.is_empty() && int(directory) >= 0 => {
                    Ok(itself(directory))
                }
                other => other,
            }
        };
        let change = |change, target| one(What::Change(change), target);
        let open = |flags: i32, directory, pointer| {
            let creates_new =
                flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
            let follow = flags & libc::O_NOFOLLOW == 0 && !creates_new;
            one(What::Open(flags), at(directory, pointer, follow)?)
        };
        match name {
            "open" => open(int(a1), low(libc::AT_FDCWD), a0),
            "openat" => open(int(a2), a0, a1),
            "creat" => {
                open(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, low(libc::AT_FDCWD), a0)
            }
            "openat2" => {
                if a3 < OPEN_HOW as u64 {
                    return Ok(None);
                }
                let [flags, mode, resolve] = caller.words::<3>(a2)?;
                match i32::try_from(flags) {
                    // Flags for resolving are rare, and refuse more than is judged here.
                    Ok(flags) if writes(flags) && resolve == 0 && (mode == 0 || makes(flags)) => {
                        open(flags, a0, a1)
                    }
                    _ => Ok(None),
                }
            }
            "mkdir" => one(What::MakeDirectory, here(a0, false)?),
            "mkdirat" => one(What::MakeDirectory, at(a0, a1, false)?),
            "mknod" => one(What::MakeNode(unsigned(a1)), here(a0, false)?),
            "mknodat" => one(What::MakeNode(unsigned(a2)), at(a0, a1, false)?),
            // What it says has to be a path too.
            "symlink" => one(What::Symlink, here(a0, false).and(here(a1, false))?),
            "symlinkat" => one(What::Symlink, here(a0, false).and(at(a1, a2, false))?),
            "link" => two(What::Link, here(a0, false)?, here(a1, false)?),
            "linkat" => {
                let flags = known(int(a4), libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH)?;
                let old = perhaps_at(a0, a1, flags, flags & libc::AT_SYMLINK_FOLLOW != 0)?;
                two(What::Link, old, at(a2, a3, false)?)
            }
            "unlink" => one(What::Unlink, here(a0, false)?),
            "rmdir" => one(What::RemoveDirectory, here(a0, false)?),
            "unlinkat" => {
                let directory = known(int(a2), libc::AT_REMOVEDIR)? != 0;
                let what = if directory { What::RemoveDirectory } else { What::Unlink };
                one(what, at(a0, a1, false)?)
            }
            "rename" => two(What::Rename(0), here(a0, false)?, here(a1, false)?),
            "renameat" => two(What::Rename(0), at(a0, a1, false)?, at(a2, a3, false)?),
            "renameat2" => two(What::Rename(unsigned(a4)), at(a0, a1, false)?, at(a2, a3, false)?),
            "truncate" if a1.cast_signed() < 0 => Ok(None),
            "truncate" => one(What::Truncate, here(a0, true)?),
            "chmod" => change(Change::Mode(unsigned(a1)), here(a0, true)?),
            "fchmod" => change(Change::Mode(unsigned(a1)), itself(a0)),
            "fchmodat" => change(Change::Mode(unsigned(a2)), at(a0, a1, true)?),
            "fchmodat2" => change(Change::Mode(unsigned(a2)), flagged(a0, a1, a3)?),
            "chown" => change(Change::Owner(unsigned(a1), unsigned(a2)), here(a0, true)?),
            "lchown" => change(Change::Owner(unsigned(a1), unsigned(a2)), here(a0, false)?),
            "fchown" => change(Change::Owner(unsigned(a1), unsigned(a2)), itself(a0)),
            "fchownat" => change(Change::Owner(unsigned(a2), unsigned(a3)), flagged(a0, a1, a4)?),
            "utime" => {
                let times = match a1 {
                    0 => None,
                    pointer => Some(caller.words::<2>(pointer)?.map(|s| (s.cast_signed(), 0))),
                };
                change(Change::Times(times), here(a0, true)?)
            }
            "utimes" => change(Change::Times(timevals(caller, a1)?), here(a0, true)?),
            "futimesat" => {
                let target = if a1 == 0 { itself(a0) } else { at(a0, a1, true)? };
                change(Change::Times(timevals(caller, a2)?), target)
            }
            "utimensat" => {
                let times = timespecs(caller, a2)?;
                if a1 != 0 {
                    return change(Change::Times(times), flagged(a0, a1, a3)?);
                }
                known(int(a3), 0)?;
                change(Change::Times(times), itself(a0))
            }
            "setxattr" => change(set_attribute(caller, arguments)?, here(a0, true)?),
            "lsetxattr" => change(set_attribute(caller, arguments)?, here(a0, false)?),
            "fsetxattr" => change(set_attribute(caller, arguments)?, itself(a0)),
            "setxattrat" => {
                let target = flagged_file(a0, a1, a2)?;
                // struct xattr_args: value, then size and flags of 32 bits each.
                let [value, rest] = caller.words::<2>(a4)?;
                let [size, flags] = [rest & u64::from(u32::MAX), rest >> 32];
                change(set_attribute(caller, &[a0, a3, value, size, flags, 0])?, target)
            }
            "removexattrat" => {
                let target = flagged_file(a0, a1, a2)?;
                change(Change::RemoveAttribute(attribute(caller, a3)?), target)
            }
            "removexattr" => {
                change(Change::RemoveAttribute(attribute(caller, a1)?), here(a0, true)?)
            }
            "lremovexattr" => {
                change(Change::RemoveAttribute(attribute(caller, a1)?), here(a0, false)?)
            }
            "fremovexattr" => change(Change::RemoveAttribute(attribute(caller, a1)?), itself(a0)),
            _ => Ok(None),
        }
    }
}

/// Whether a file is opened to write or to create.
pub(super) fn writes(flags: i32) -> bool {
    flags & libc::O_PATH == 0
        && flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0
}

/// Whether an open may make a file, so that its mode means something.
fn makes(flags: i32) -> bool {
    flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

/// Flags, where the kernel takes them.
fn known(flags: i32, known: i32) -> Result<i32, Errno> {
    if flags & !known == 0 { Ok(flags) } else { Err(Errno::EINVAL) }
}

/// The name of a call without its variants, for one whose arguments say nothing.
pub(super) fn without_variant(name: &str) -> &str {
    match name {
        "openat" | "openat2" | "creat" => "open",
        "mknodat" => "mknod",
        "fchmod" | "fchmodat" | "fchmodat2" => "chmod",
        "lchown" | "fchown" | "fchownat" => "chown",
        "utime" | "futimesat" | "utimensat" => "utimes",
        "lsetxattr" | "fsetxattr" | "setxattrat" => "setxattr",
        "lremovexattr" | "fremovexattr" | "removexattrat" => "removexattr",
        other => other,
    }
}

/// Whether a call changes metadata.
pub(super) fn is_change(name: &str) -> bool {
    name.contains("xattr")
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
    let flags = known(int(flags), libc::XATTR_CREATE | libc::XATTR_REPLACE)?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > VALUE_MAX {
        return Err(Errno::E2BIG);
    }
    Ok(Change::SetAttribute {
        name: attribute(caller, name)?,
        value: caller.bytes(value, size)?,
        flags,
    })
}

/// The name of an extended attribute, xattr(7).
fn attribute(caller: &Caller<'_>, pointer: u64) -> Result<Vec<u8>, Errno> {
    let name = caller.path(pointer)?;
    if (1..=NAME_MAX).contains(&name.len()) { Ok(name) } else { Err(Errno::ERANGE) }
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
