//! Looking up a path as its caller would: from the caller's directories and descriptors, through
//! symbolic links, and through the links of /proc that lead to what no path names.
//!
//! Name by name, because a link of /proc/self means the process that follows it, and that is us.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use dsh_kernel::node::{self, Node};
use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag, readlinkat};
use nix::libc;
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

use super::attempt::{Base, Target};
use super::caller::{Caller, Numbers, name};
use super::view::open_at;

/// As many symbolic links as the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;
/// The inode of the root of every /proc.
const PROC_ROOT: u64 = 1;

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Location {
    /// The directory of the last name; none where the path ends in no name (`/`, `..`, a
    /// descriptor, a link of /proc).
    pub(super) parent: Option<(OwnedFd, Node)>,
    /// The last name.
    pub(super) name: OsString,
    /// What is there; none where nothing is.
    pub(super) node: Option<(OwnedFd, Node)>,
    /// Whether the path ends in a slash, so that only a directory will do.
    pub(super) directory: bool,
}

/// Looks a target up: the file, or with `as_name` what is in its directory under its last name.
///
/// # Errors
///
/// What the caller gets from the kernel as well: `ENOENT` on the way, `ENOTDIR`, `EACCES`, `ELOOP`,
/// `ENAMETOOLONG`, `EBADF`.
pub(super) fn locate(
    target: &Target,
    caller: &Caller<'_>,
    numbers: Numbers,
    as_name: bool,
) -> Result<Location, Errno> {
    let location = walk(target, caller, numbers, as_name)?;
    match &location.node {
        Some((_, node)) if location.directory && node.kind() != libc::S_IFDIR => {
            Err(Errno::ENOTDIR)
        }
        _ => Ok(location),
    }
}

fn walk(
    target: &Target,
    caller: &Caller<'_>,
    numbers: Numbers,
    as_name: bool,
) -> Result<Location, Errno> {
    let absolute = target.path.first() == Some(&b'/');
    let start = if absolute { root()? } else { caller.base(target.base)? };
    if let Base::OpenFile(number) = target.base
        && caller.is_path_alone(number)
    {
        return Err(Errno::EBADF);
    }
    if target.path.is_empty() {
        let node = node::of_file(start.as_fd())?;
        return Ok(Location {
            parent: None,
            name: OsString::new(),
            node: Some((start, node)),
            directory: false,
        });
    }
    let mut rest = Rest::of(&target.path);
    let mut here = start;
    let mut links = 0;
    loop {
        let Some(mut component) = rest.next() else {
            let node = node::of_file(here.as_fd())?;
            return Ok(Location {
                parent: None,
                name: OsString::new(),
                node: Some((here, node)),
                directory: rest.directory,
            });
        };
        let last = rest.is_empty();
        // With a slash behind it a link is followed, whatever was asked for.
        let follow = target.follow || (rest.directory && !as_name);
        if component == ".." || component == "." {
            here = step(here.as_fd(), &component, OFlag::O_DIRECTORY)?;
            continue;
        }
        if let Some(meant) = substitute(here.as_fd(), &component, numbers) {
            links += 1;
            component = meant;
        }
        let found = match step(here.as_fd(), &component, OFlag::O_NOFOLLOW) {
            Err(Errno::ENOENT) if last => None,
            other => Some(other?),
        };
        let node = found.as_ref().map(|found| node::of_file(found.as_fd())).transpose()?;
        match (found, node) {
            (Some(found), Some(node)) if node.kind() == libc::S_IFLNK && (!last || follow) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::ELOOP);
                }
                if is_magic(here.as_fd()) {
                    here = open_at(
                        here.as_fd(),
                        Path::new(&component),
                        OFlag::empty(),
                        ResolveFlag::empty(),
                    )?;
                    continue;
                }
                let text = readlinkat(found.as_fd(), "")?;
                if text.as_bytes().first() == Some(&b'/') {
                    here = root()?;
                }
                rest.put_before(text.as_bytes());
            }
            (found, node) if last => {
                let parent_node = node::of_file(here.as_fd())?;
                return Ok(Location {
                    parent: Some((here, parent_node)),
                    name: component,
                    node: found.zip(node),
                    directory: rest.directory,
                });
            }
            (Some(found), _) => here = found,
            (None, _) => return Err(Errno::ENOENT),
        }
    }
}

fn root() -> Result<OwnedFd, Errno> {
    nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, nix::sys::stat::Mode::empty())
}

fn step(here: BorrowedFd<'_>, component: &OsStr, flags: OFlag) -> Result<OwnedFd, Errno> {
    open_at(here, Path::new(component), flags, ResolveFlag::empty())
}

/// Whether a directory is one of /proc.
pub(super) fn is_proc(directory: BorrowedFd<'_>) -> bool {
    fstatfs(directory).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC)
}

/// Whether links in this directory are the kernel's own jumps rather than text: in /proc all but
/// those of its root.
fn is_magic(directory: BorrowedFd<'_>) -> bool {
    is_proc(directory) && node::of_file(directory).is_ok_and(|node| node.inode != PROC_ROOT)
}

/// `self` and `thread-self` of a /proc mean whoever looks them up: the caller, in place of us.
fn substitute(directory: BorrowedFd<'_>, component: &OsStr, numbers: Numbers) -> Option<OsString> {
    let process = numbers.process_inside;
    let meant = match component.as_bytes() {
        b"self" => process.to_string(),
        b"thread-self" => format!("{process}/task/{}", numbers.thread_inside),
        _ => return None,
    };
    let root = node::of_file(directory).is_ok_and(|node| node.inode == PROC_ROOT);
    (root && is_proc(directory)).then(|| meant.into())
}

/// What of a path is still to be walked, last name first.
struct Rest {
    components: Vec<OsString>,
    directory: bool,
}

impl Rest {
    fn of(path: &[u8]) -> Self {
        let mut rest = Self { components: Vec::new(), directory: false };
        rest.put_before(path);
        rest
    }

    fn put_before(&mut self, path: &[u8]) {
        if self.components.is_empty() {
            self.directory |= path.last() == Some(&b'/');
        }
        let names = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
        self.components.extend(names.rev().map(|part| name(part).to_owned()));
    }

    fn next(&mut self) -> Option<OsString> {
        self.components.pop()
    }

    fn is_empty(&self) -> bool {
        self.components.is_empty()
    }
}

impl Location {
    /// The whole name, as the command sees it.
    pub(super) fn path(
        &self,
        name_of: impl Fn(BorrowedFd<'_>) -> Result<OsString, Errno>,
    ) -> OsString {
        match (&self.parent, &self.node) {
            (Some((parent, _)), _) => {
                let mut path = name_of(parent.as_fd()).unwrap_or_default().into_vec();
                if path.last() != Some(&b'/') {
                    path.push(b'/');
                }
                path.extend_from_slice(self.name.as_bytes());
                OsString::from_vec(path)
            }
            (None, Some((node, _))) => name_of(node.as_fd()).unwrap_or_default(),
            (None, None) => OsString::new(),
        }
    }
}
