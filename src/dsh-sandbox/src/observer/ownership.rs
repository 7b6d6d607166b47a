//! What the kernel cannot be asked: whether the caller's own rights allow a change of metadata, the
//! removal of another's name, or a link (chmod(2), chown(2), utimensat(2), xattr(7), inode(7),
//! proc_sys_fs(5)).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use caps::Capability;
use dsh_kernel::access;
use dsh_kernel::node::Node;
use nix::errno::Errno;
use nix::libc;
use nix::unistd::AccessFlags;

use super::attempt::Change;
use super::caller::Identity;
use super::judge::OtherReason;
use super::view::View;

impl Identity {
    /// Whether the thread has a capability in effect.
    pub(super) fn has(&self, capability: Capability) -> bool {
        self.capabilities & (1 << capability.index()) != 0
    }

    fn owns(&self, node: &Node) -> bool {
        self.uid == node.uid || self.has(Capability::CAP_FOWNER)
    }

    fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }
}

fn only_if(allowed: bool) -> Result<(), OtherReason> {
    if allowed { Ok(()) } else { Err(OtherReason) }
}

/// Whether the file's contents may be written, on a read-only mount too.
fn may_write(file: BorrowedFd<'_>) -> bool {
    matches!(access::check(file, AccessFlags::W_OK), Ok(()) | Err(Errno::EROFS))
}

/// Whether metadata may be changed.
pub(super) fn may_change(
    change: &Change,
    identity: &Identity,
    file: BorrowedFd<'_>,
    node: &Node,
    view: &View,
) -> Result<(), OtherReason> {
    match change {
        // A symbolic link has no mode of its own.
        Change::Mode(_) => only_if(identity.owns(node) && node.kind() != libc::S_IFLNK),
        Change::Owner(uid, gid) => {
            let stays = |id: u32, now: u32| id == u32::MAX || id == now;
            let own_group = *gid == u32::MAX || identity.is_in(*gid);
            // It takes such bits away, which only an owner may.
            let special =
                node.kind() != libc::S_IFDIR && node.mode & (libc::S_ISUID | libc::S_ISGID) != 0;
            only_if(
                identity.has(Capability::CAP_CHOWN)
                    || ((identity.owns(node) || !special)
                        && stays(*uid, node.uid)
                        && (*uid == u32::MAX || identity.uid == node.uid)
                        && (*gid == u32::MAX || (identity.uid == node.uid && own_group))),
            )
        }
        Change::Times(None) => only_if(identity.owns(node) || may_write(file)),
        Change::Times(Some([(_, first), (_, second)])) => {
            let (now, omit) = (libc::UTIME_NOW, libc::UTIME_OMIT);
            let valid =
                |time: i64| (0..1_000_000_000).contains(&time) || [now, omit].contains(&time);
            let nothing = *first == omit && *second == omit;
            only_if(valid(*first) && valid(*second) && !nothing && identity.owns(node))
        }
        Change::SetAttribute { name, flags, .. } => {
            let there = has_attribute(file, name, view);
            only_if(
                may_set_attribute(name, identity, file, node)
                    && (flags & libc::XATTR_CREATE == 0 || !there)
                    && (flags & libc::XATTR_REPLACE == 0 || there),
            )
        }
        Change::RemoveAttribute(name) => only_if(
            may_set_attribute(name, identity, file, node) && has_attribute(file, name, view),
        ),
    }
}

/// xattr(7): attributes of a user are those of files and directories; the rest is an
/// administrator's, and not judged.
fn may_set_attribute(name: &[u8], identity: &Identity, file: BorrowedFd<'_>, node: &Node) -> bool {
    let plain = matches!(node.kind(), libc::S_IFREG | libc::S_IFDIR);
    let sticky = node.kind() == libc::S_IFDIR && node.mode & libc::S_ISVTX != 0;
    if name.strip_prefix(b"user.").is_some_and(|rest| !rest.is_empty()) {
        return plain && may_write(file) && (!sticky || identity.owns(node));
    }
    name.starts_with(b"system.posix_acl_") && plain && identity.owns(node)
}

fn has_attribute(file: BorrowedFd<'_>, name: &[u8], view: &View) -> bool {
    view.has_attribute(file, OsStr::from_bytes(name))
}

/// Whether a file may be opened with `O_NOATIME`, open(2). Of the id that every owner without a
/// mapping is shown as (user_namespaces(7)) that cannot be told.
pub(super) fn may_leave_times(
    identity: &Identity,
    node: &Node,
    view: &View,
) -> Result<(), OtherReason> {
    only_if(identity.owns(node) && node.uid != view.setting("kernel/overflowuid"))
}

/// Whether a name may be removed from a directory that may be written: not another's from a sticky
/// one.
pub(super) fn may_remove(
    identity: &Identity,
    directory: &Node,
    node: &Node,
) -> Result<(), OtherReason> {
    let sticky = directory.mode & libc::S_ISVTX != 0;
    only_if(
        !sticky
            || identity.uid == node.uid
            || identity.uid == directory.uid
            || identity.has(Capability::CAP_FOWNER),
    )
}

/// Whether an open with `O_CREAT` takes what is there already: not another's, in a sticky directory
/// that others may write (`fs.protected_fifos` and `fs.protected_regular`; devices always).
pub(super) fn may_create_over(
    identity: &Identity,
    directory: &Node,
    node: &Node,
    view: &View,
) -> Result<(), OtherReason> {
    let sticky = directory.mode & libc::S_ISVTX != 0;
    if !sticky || node.uid == directory.uid || node.uid == identity.uid {
        return Ok(());
    }
    let protected = match node.kind() {
        libc::S_IFIFO => view.setting("fs/protected_fifos"),
        libc::S_IFREG => view.setting("fs/protected_regular"),
        _ => 1,
    };
    let by_all = protected > 0 && directory.mode & libc::S_IWOTH != 0;
    let by_group = protected > 1 && directory.mode & libc::S_IWGRP != 0;
    only_if(!by_all && !by_group)
}

/// Whether a file may be moved to another directory: one that is a directory itself has an entry
/// that changes with it.
pub(super) fn may_move(file: BorrowedFd<'_>, node: &Node) -> Result<(), OtherReason> {
    only_if(node.kind() != libc::S_IFDIR || may_write(file))
}

/// Whether a file may be given another name where `fs.protected_hardlinks` is set, as everywhere.
pub(super) fn may_link(
    identity: &Identity,
    file: BorrowedFd<'_>,
    node: &Node,
) -> Result<(), OtherReason> {
    let both = AccessFlags::R_OK | AccessFlags::W_OK;
    let set_group = node.mode & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP;
    let harmless = node.kind() == libc::S_IFREG
        && node.mode & libc::S_ISUID == 0
        && !set_group
        && matches!(access::check(file.as_fd(), both), Ok(()) | Err(Errno::EROFS));
    only_if(identity.owns(node) || harmless)
}
