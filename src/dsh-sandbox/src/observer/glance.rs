//! The fast way to see that a call is not denied: where a few look-ups that nothing can delay lead
//! to what may be written. Whatever is not that plain is left to the judge.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dsh_kernel::node::{self, Node};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, ResolveFlag, readlinkat};
use nix::libc;

use super::attempt::{Attempt, Change, Target, What};
use super::caller::{Caller, name};
use super::view::{CACHED, View, open_at};

/// Whether the sandbox does not stand in the way of an attempt, for sure.
pub(super) fn is_free(view: &View, caller: &Caller<'_>, attempt: &Attempt) -> bool {
    let glance = Glance { view, caller };
    match (&attempt.what, &attempt.second) {
        (What::Open(flags), _) if flags & libc::O_CREAT != 0 => {
            glance.may_create(&attempt.target) || glance.may_change(&attempt.target)
        }
        // Anybody may change those, or nobody but an administrator.
        (What::Change(Change::SetAttribute { name, .. } | Change::RemoveAttribute(name)), _)
            if !name.starts_with(b"user.") && !name.starts_with(b"system.posix_acl_") =>
        {
            true
        }
        (What::Open(_) | What::Truncate | What::Change(_), _) => glance.may_change(&attempt.target),
        (What::MakeNode(mode), _)
            if matches!(mode & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK) =>
        {
            false
        }
        (What::Rename(_) | What::Link, Some(second)) => {
            let same = |one: Free<'_>, other: Free<'_>| one.node.mount == other.node.mount;
            !attempt.target.follow
                && glance
                    .free_parent(&attempt.target)
                    .zip(glance.free_parent(second))
                    .is_some_and(|(one, other)| same(one, other))
        }
        _ => glance.free_parent(&attempt.target).is_some(),
    }
}

struct Glance<'a> {
    view: &'a View,
    caller: &'a Caller<'a>,
}

/// A directory that may be changed, and the name in it.
struct Free<'a> {
    directory: OwnedFd,
    node: Node,
    name: &'a [u8],
}

impl Glance<'_> {
    /// The directory of a path, where it may be changed.
    fn free_parent<'t>(&self, target: &'t Target) -> Option<Free<'t>> {
        let slash = target.path.iter().rposition(|&byte| byte == b'/');
        let (directory, last) = match slash {
            Some(0) => (&target.path[..1], &target.path[1..]),
            Some(at) => (&target.path[..at], &target.path[at + 1..]),
            None => (&target.path[..0], &target.path[..]),
        };
        if last.is_empty() || last == b"." || last == b".." {
            return None;
        }
        let directory = self.open(target, directory, OFlag::O_DIRECTORY).ok()?;
        let node = node::of_file(directory.as_fd()).ok()?;
        let free = self.view.lets_change(directory.as_fd(), &node, false) == Ok(true);
        free.then_some(Free { directory, node, name: last })
    }

    /// Opens a part of a target's path, as far as the kernel has it at hand.
    fn open(&self, target: &Target, path: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
        let resolve = CACHED | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        if path.first() == Some(&b'/') {
            return open_at(AT_FDCWD, Path::new(name(path)), flags, resolve);
        }
        let base = self.caller.base(target.base)?;
        if path.is_empty() {
            return Ok(base);
        }
        open_at(base.as_fd(), Path::new(name(path)), flags, resolve)
    }

    /// Opens a file that need not be there.
    fn may_create(&self, target: &Target) -> bool {
        let Some(free) = self.free_parent(target) else { return false };
        if !target.follow {
            return true;
        }
        if !self.view.is_local(free.node.mount) {
            return false;
        }
        let last = name(free.name);
        match readlinkat(&free.directory, last) {
            Err(Errno::ENOENT) => true,
            // It is there, and no link; it may be a mount point, or a device.
            Err(Errno::EINVAL) => {
                let file =
                    open_at(free.directory.as_fd(), Path::new(last), OFlag::O_NOFOLLOW, CACHED);
                file.and_then(|file| node::of_file(file.as_fd()))
                    .is_ok_and(|node| node.mount == free.node.mount && !is_device(&node))
            }
            _ => false,
        }
    }

    /// Writes an existing file or its metadata.
    fn may_change(&self, target: &Target) -> bool {
        let flags = if target.follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        let Ok(file) = self.open(target, &target.path, flags) else { return false };
        let Ok(node) = node::of_file(file.as_fd()) else { return false };
        self.is_free_file(file.as_fd(), &node)
    }

    fn is_free_file(&self, file: BorrowedFd<'_>, node: &Node) -> bool {
        self.view.is_named(node)
            || (!is_device(node)
                && self.view.own_mounts()
                && self.view.lets_change(file, node, false) == Ok(true))
    }
}

/// Whether a file is a device, which may not open where others do.
pub(super) fn is_device(node: &Node) -> bool {
    matches!(node.kind(), libc::S_IFCHR | libc::S_IFBLK)
}
