//! The command's tree of mounts as its observer sees it, the host's beside it, and what in the
//! first may be written.

use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dsh_kernel::metadata;
use dsh_kernel::node::{self, Node};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::libc;
use nix::sys::statvfs::{FsFlags, fstatvfs};

use crate::mountinfo;
use crate::plan::ObserverPlan;

/// Only what the kernel has at hand: no file system is asked, so that none can keep us waiting
/// (openat2(2), `RESOLVE_CACHED`, Linux 5.12).
pub(super) const CACHED: ResolveFlag = ResolveFlag::from_bits_retain(0x20);

/// Kinds of file systems whose names are looked up on this machine, so that a look-up ends.
const LOCAL: [&str; 12] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "ramfs", "overlay", "proc", "sysfs",
    "zfs",
];

/// What an observer knows of the trees. It lives in the command's own, with the command's root.
pub(crate) struct View {
    /// A /proc with the numbers of the observer's pid namespace.
    pub(super) proc: OwnedFd,
    /// The root of the host's tree.
    pub(super) host: OwnedFd,
    /// Whether the command has mounts of its own, which decide what may be written.
    own_mounts: bool,
    /// Numbers of the tree's mounts that are read-only.
    read_only: HashSet<u64>,
    /// Numbers of those that are not.
    writable: HashSet<u64>,
    /// Numbers of the mounts whose look-ups end.
    local: HashSet<u64>,
    /// Landlock's ABI; 0 without.
    landlock: u32,
    /// Device and inode of the directories below which Landlock allows everything.
    roots: HashSet<(u64, u64)>,
    /// The same of single files: device nodes, and what the caller handed over.
    files: HashSet<(u64, u64)>,
}

impl View {
    /// Looks around. The calling process has entered the command's tree.
    ///
    /// # Errors
    ///
    /// That of reading the mount table.
    pub(super) fn new(
        plan: &ObserverPlan,
        proc: OwnedFd,
        host: OwnedFd,
        grants: &[(u64, u64)],
    ) -> Result<Self, Errno> {
        let table = read_all(proc.as_fd(), "self/mountinfo")?;
        let mounts = mountinfo::parse(&table);
        let mut view = Self {
            proc,
            host,
            own_mounts: plan.own_mounts,
            read_only: mounts.iter().filter(|one| one.read_only()).map(|one| one.id).collect(),
            writable: mounts.iter().filter(|one| !one.read_only()).map(|one| one.id).collect(),
            local: mounts
                .iter()
                .filter(|one| LOCAL.contains(&one.kind.as_str()))
                .map(|one| one.id)
                .collect(),
            landlock: plan.landlock.as_ref().map_or(0, |plan| plan.abi),
            roots: HashSet::new(),
            files: grants.iter().copied().collect(),
        };
        if let Some(landlock) = &plan.landlock {
            view.roots.extend(landlock.roots.iter().map(|root| (root.device, root.inode)));
            view.add_places(&landlock.scratch);
            view.add_places(&landlock.devices);
        }
        Ok(view)
    }

    fn add_places(&mut self, places: &[OsString]) {
        for place in places {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
            let opened = nix::fcntl::open(Path::new(place), flags, nix::sys::stat::Mode::empty());
            let Ok(node) = opened.and_then(|place| node::of_file(place.as_fd())) else { continue };
            let set = if node.kind() == libc::S_IFDIR { &mut self.roots } else { &mut self.files };
            set.insert((node.device, node.inode));
        }
    }

    /// Landlock's ABI; 0 without.
    pub(super) fn landlock(&self) -> u32 {
        self.landlock
    }

    /// Whether the command has mounts of its own.
    pub(super) fn own_mounts(&self) -> bool {
        self.own_mounts
    }

    /// Whether this sandbox lets a directory be changed, by the mount through which it is seen or,
    /// without own mounts, by where it lies.
    ///
    /// # Errors
    ///
    /// `EAGAIN` when that cannot be told without asking a file system, and `patient` is false.
    pub(super) fn lets_change(
        &self,
        directory: BorrowedFd<'_>,
        node: &Node,
        patient: bool,
    ) -> Result<bool, Errno> {
        if self.own_mounts {
            if self.writable.contains(&node.mount) {
                return Ok(true);
            }
            // What was handed over is seen through the mount of whoever opened it.
            let handed_over = self.is_named(node) && !self.read_only.contains(&node.mount);
            return Ok(handed_over && !is_read_only(directory));
        }
        self.is_below_roots(directory, node, patient)
    }

    /// Whether Landlock's rules cover an open file: it is one that they name, or lies below one.
    pub(super) fn is_below_roots(
        &self,
        file: BorrowedFd<'_>,
        node: &Node,
        patient: bool,
    ) -> Result<bool, Errno> {
        if self.landlock == 0 {
            return Ok(true);
        }
        if self.files.contains(&(node.device, node.inode)) {
            return Ok(true);
        }
        if node.kind() != libc::S_IFDIR {
            // Of an open file only the name that it has now tells where it lies.
            let Some((parent, parent_node)) = self.parent(file, node)? else { return Ok(false) };
            return self.is_below_roots(parent.as_fd(), &parent_node, patient);
        }
        let mut here: Option<OwnedFd> = None;
        let mut now = *node;
        loop {
            if self.roots.contains(&(now.device, now.inode)) {
                return Ok(true);
            }
            let from = here.as_ref().map_or(file, AsFd::as_fd);
            let resolve = if patient { ResolveFlag::empty() } else { CACHED };
            let above = open_at(from, Path::new(".."), OFlag::O_DIRECTORY, resolve)?;
            let next = node::of_file(above.as_fd())?;
            if (next.mount, next.device, next.inode) == (now.mount, now.device, now.inode) {
                return Ok(false);
            }
            now = next;
            here = Some(above);
        }
    }

    /// The directory in which an open file lies, found by its present name and compared.
    fn parent(&self, file: BorrowedFd<'_>, node: &Node) -> Result<Option<(OwnedFd, Node)>, Errno> {
        let path = self.name_of(file)?;
        let path = Path::new(&path);
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        if !path.is_absolute() {
            return Ok(None);
        }
        let no_links = ResolveFlag::RESOLVE_NO_SYMLINKS;
        let Ok(directory) = open_in(AT_FDCWD, directory, OFlag::O_DIRECTORY, no_links) else {
            return Ok(None);
        };
        let there = open_at(directory.as_fd(), Path::new(name), OFlag::O_NOFOLLOW, no_links);
        let Ok(there) = there.and_then(|there| node::of_file(there.as_fd())) else {
            return Ok(None);
        };
        if (there.device, there.inode) != (node.device, node.inode) {
            return Ok(None);
        }
        let above = node::of_file(directory.as_fd())?;
        Ok(Some((directory, above)))
    }

    /// Whether look-ups on a mount end without anybody else's help.
    pub(super) fn is_local(&self, mount: u64) -> bool {
        self.local.contains(&mount)
    }

    /// Whether a mount is a part of the tree at all, and not one of the kernel's own for pipes and
    /// the like.
    pub(super) fn has_mount(&self, node: &Node, file: BorrowedFd<'_>) -> bool {
        self.local.contains(&node.mount)
            || self.writable.contains(&node.mount)
            || self.name_of(file).is_ok_and(|name| name.as_bytes().starts_with(b"/"))
    }

    /// Whether Landlock's rules name this file itself.
    pub(super) fn is_named(&self, node: &Node) -> bool {
        self.files.contains(&(node.device, node.inode))
    }

    /// The present name of an open file, as the command sees it.
    pub(super) fn name_of(&self, file: BorrowedFd<'_>) -> Result<OsString, Errno> {
        let link = format!("self/fd/{}", file.as_raw_fd());
        readlinkat(&self.proc, link.as_str())
    }

    /// A kernel setting that is a number, proc_sys(5); 0 where there is none.
    pub(super) fn setting(&self, name: &str) -> u32 {
        let text = read_all(self.proc.as_fd(), &format!("sys/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().parse().unwrap_or(0)
    }

    /// Whether an open file has an extended attribute of this name.
    pub(super) fn has_attribute(&self, file: BorrowedFd<'_>, name: &OsStr) -> bool {
        let Ok(name) = CString::new(name.as_bytes()) else { return false };
        link_of(file).is_some_and(|link| metadata::has_attribute(&link, &name))
    }

    /// Opens what the host has under an absolute name, for its path alone: a symbolic link itself.
    pub(super) fn on_host(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_on_host(path, OFlag::O_NOFOLLOW)
    }

    /// The same, through a symbolic link.
    pub(super) fn on_host_following(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_on_host(path, OFlag::empty())
    }

    fn open_on_host(&self, path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
        let scoped = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        open_at(self.host.as_fd(), path, flags, scoped)
    }
}

/// The link in /proc that leads to an open file, relative to an observer's working directory.
pub(super) fn link_of(file: BorrowedFd<'_>) -> Option<CString> {
    CString::new(format!("self/fd/{}", file.as_raw_fd())).ok()
}

/// Whether a file is seen through a read-only mount, or its file system is read-only.
pub(super) fn is_read_only(file: BorrowedFd<'_>) -> bool {
    fstatvfs(file).is_ok_and(|system| system.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether a file is seen through a mount on which no device opens.
pub(super) fn has_no_devices(file: BorrowedFd<'_>) -> bool {
    fstatvfs(file).is_ok_and(|system| system.flags().contains(FsFlags::ST_NODEV))
}

/// Opens a name for its path alone.
pub(super) fn open_at(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlag,
    resolve: ResolveFlag,
) -> Result<OwnedFd, Errno> {
    open_in(directory, path, flags, resolve)
}

fn open_in(
    directory: impl AsFd,
    path: &Path,
    flags: OFlag,
    resolve: ResolveFlag,
) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags).resolve(resolve);
    loop {
        match openat2(&directory, path, how) {
            // A rename elsewhere came between (openat2(2)).
            Err(Errno::EAGAIN) if !resolve.contains(CACHED) => {}
            other => return other,
        }
    }
}

fn read_all(directory: BorrowedFd<'_>, name: &str) -> Result<Vec<u8>, Errno> {
    use std::io::Read;
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = nix::fcntl::openat(directory, name, flags, nix::sys::stat::Mode::empty())?;
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .read_to_end(&mut bytes)
        .map_err(|error| crate::error::errno_of(&error))?;
    Ok(bytes)
}
