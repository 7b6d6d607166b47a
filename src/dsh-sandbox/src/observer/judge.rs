//! Whether this sandbox refuses what a call is after, and nothing else does: neither the caller's
//! own rights, nor the host's own mounts, nor what is or is not there.
//!
//! The asking process has the caller's ids and capabilities, so that the kernel itself answers as
//! far as it can be asked without doing anything.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use dsh_facts::Layer;
use dsh_kernel::access;
use dsh_kernel::node::{self, Node};
use nix::errno::Errno;
use nix::libc;
use nix::unistd::AccessFlags;

use super::attempt::{Attempt, What};
use super::caller::{Caller, Identity, Numbers};
use super::glance::is_device;
use super::locate::{Location, is_proc, locate};
use super::ownership;
use super::view::{View, has_no_devices, is_read_only};

/// How this sandbox refuses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    pub(super) layer: Layer,
}

/// What comes of one look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing stands in the way.
    Allowed,
    /// This sandbox does.
    Refused(Refusal),
}

/// Something else stands in the way, here as outside: nothing is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherReason;

impl From<Errno> for OtherReason {
    fn from(_: Errno) -> Self {
        Self
    }
}

/// Everything that an answer depends on.
pub(super) struct Judge<'a> {
    pub(super) view: &'a View,
    pub(super) caller: &'a Caller<'a>,
    pub(super) numbers: Numbers,
    pub(super) identity: &'a Identity,
    /// Whether user id 0 would be an administrator outside.
    pub(super) administrator: bool,
}

pub(super) type Judged = Result<Option<(Refusal, Location)>, OtherReason>;

impl Judge<'_> {
    /// The refusal, if there is one, and where.
    pub(super) fn judge(&self, attempt: &Attempt) -> Judged {
        let as_name = attempt.what.takes_a_name();
        let target = locate(&attempt.target, self.caller, self.numbers, as_name)?;
        let second = match &attempt.second {
            Some(second) => Some(locate(second, self.caller, self.numbers, true)?),
            None => None,
        };
        match (&attempt.what, second) {
            (What::Open(flags), _) => self.open(*flags, target),
            (What::MakeDirectory, _) => self.make(target, true),
            (What::MakeNode(mode), _) => self.make_node(*mode, target),
            (What::Symlink | What::Bind, _) => self.make(target, false),
            (What::Unlink, _) => self.remove(target, false),
            (What::RemoveDirectory, _) => self.remove(target, true),
            (What::Link, Some(new)) => self.link(target, new),
            (What::Rename(flags), Some(new)) => self.rename(*flags, target, new),
            (What::Link | What::Rename(_), None) => Err(OtherReason),
            (What::Truncate, _) => self.truncate(target),
            (What::Change(change), _) => {
                let Some((file, node)) = &target.node else { return Err(OtherReason) };
                ownership::may_change(change, self.identity, file.as_fd(), node, self.view)?;
                let answer = self.write_metadata(file.as_fd(), node);
                Ok(refusal(answer?, target))
            }
        }
    }

    fn open(&self, flags: i32, target: Location) -> Judged {
        let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let creates = flags & libc::O_CREAT != 0;
        let access = flags & libc::O_ACCMODE;
        if creates && flags & libc::O_DIRECTORY != 0 {
            return Err(OtherReason);
        }
        let Some((file, node)) = &target.node else {
            let (true, false, Some((parent, parent_node))) =
                (creates, target.directory, &target.parent)
            else {
                return Err(OtherReason);
            };
            let answer = self.change_directory(parent.as_fd(), parent_node)?;
            return Ok(refusal(answer, target));
        };
        let is_directory = node.kind() == libc::S_IFDIR;
        if temporary {
            if !is_directory || access == libc::O_RDONLY {
                return Err(OtherReason);
            }
            let answer = self.change_directory(file.as_fd(), node)?;
            return Ok(refusal(answer, target));
        }
        let exclusive = creates && flags & libc::O_EXCL != 0;
        let wrong_kind = node.kind() == libc::S_IFLNK
            || node.kind() == libc::S_IFSOCK
            || (target.directory && !is_directory)
            || (flags & libc::O_DIRECTORY != 0 && !is_directory);
        let truncates = flags & libc::O_TRUNC != 0 && node.kind() == libc::S_IFREG;
        // Both together are a mode of its own: both rights, and neither reading nor writing.
        let writes = matches!(access, libc::O_WRONLY | libc::O_RDWR) || truncates;
        let past_the_cache =
            flags & libc::O_DIRECT != 0 && matches!(node.kind(), libc::S_IFIFO | libc::S_IFCHR);
        if exclusive || wrong_kind || is_directory || !writes || past_the_cache {
            return Err(OtherReason);
        }
        if flags & libc::O_NOATIME != 0 {
            ownership::may_leave_times(self.identity, node, self.view)?;
        }
        if let (true, Some((_, parent))) = (creates, &target.parent) {
            ownership::may_create_over(self.identity, parent, node, self.view)?;
        }
        let reads = access != libc::O_WRONLY;
        let mut wanted = AccessFlags::W_OK;
        wanted.set(AccessFlags::R_OK, reads);
        let answer = self.write(file.as_fd(), node, wanted)?;
        Ok(refusal(answer, target))
    }

    /// Makes a name.
    fn make(&self, target: Location, directory: bool) -> Judged {
        let (None, Some((parent, node))) = (&target.node, &target.parent) else {
            return Err(OtherReason);
        };
        if target.directory && !directory {
            return Err(OtherReason);
        }
        let answer = self.change_directory(parent.as_fd(), node)?;
        Ok(refusal(answer, target))
    }

    fn make_node(&self, mode: u32, target: Location) -> Judged {
        let device = matches!(mode & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK);
        let known = matches!(
            mode & libc::S_IFMT,
            0 | libc::S_IFREG | libc::S_IFCHR | libc::S_IFBLK | libc::S_IFIFO | libc::S_IFSOCK
        );
        if !known || (device && !(self.administrator && self.identity.uid == 0)) {
            return Err(OtherReason);
        }
        let parent = target.parent.as_ref().map(|(_, node)| node.mount);
        match self.make(target, false) {
            // A mount that may be written, and a capability that is gone.
            Ok(None) if device && parent.is_some() => Err(OtherReason),
            other => other,
        }
    }

    fn remove(&self, target: Location, directory: bool) -> Judged {
        let answer = self.remove_name(&target, Some(directory))?;
        Ok(refusal(answer, target))
    }

    /// Whether a name may be taken away; of a directory, or of anything else, where that is known.
    pub(super) fn remove_name(
        &self,
        target: &Location,
        directory: Option<bool>,
    ) -> Result<Answer, OtherReason> {
        let (Some((file, node)), Some((parent, parent_node))) = (&target.node, &target.parent)
        else {
            return Err(OtherReason);
        };
        let is_directory = node.kind() == libc::S_IFDIR;
        if directory.is_some_and(|directory| directory != is_directory)
            || (target.directory && !is_directory)
            // A mount point is busy.
            || (self.view.own_mounts() && node.mount != parent_node.mount && self.is_busy(target))
            || (directory == Some(true) && !is_empty(file.as_fd()))
        {
            return Err(OtherReason);
        }
        let answer = self.change_directory(parent.as_fd(), parent_node)?;
        ownership::may_remove(self.identity, parent_node, node)?;
        Ok(answer)
    }

    /// Whether a mount point of the sandbox's is one outside too.
    fn is_busy(&self, target: &Location) -> bool {
        let path = target.path(|file| self.view.name_of(file));
        let path = Path::new(&path);
        let node = self.view.on_host(path).and_then(|file| node::of_file(file.as_fd()));
        let above = path.parent().map_or(Err(Errno::ENOENT), |parent| {
            self.view.on_host(parent).and_then(|file| node::of_file(file.as_fd()))
        });
        match (node, above) {
            (Ok(node), Ok(above)) => node.mount != above.mount,
            _ => true,
        }
    }

    fn truncate(&self, target: Location) -> Judged {
        let Some((file, node)) = &target.node else { return Err(OtherReason) };
        let governed = self.view.own_mounts() || self.view.landlock() >= 3;
        if node.kind() != libc::S_IFREG || target.directory || !governed {
            return Err(OtherReason);
        }
        let answer = self.write(file.as_fd(), node, AccessFlags::W_OK)?;
        Ok(refusal(answer, target))
    }

    /// Adds or removes a name in a directory.
    pub(super) fn change_directory(
        &self,
        directory: BorrowedFd<'_>,
        node: &Node,
    ) -> Result<Answer, OtherReason> {
        match access::check(directory, AccessFlags::W_OK | AccessFlags::X_OK) {
            Ok(()) if self.view.is_below_roots(directory, node, true)? => Ok(Answer::Allowed),
            Ok(()) => Ok(Answer::Refused(LANDLOCK)),
            // Nobody can in /proc.
            Err(Errno::EROFS) if is_proc(directory) => Err(OtherReason),
            Err(Errno::EROFS) => self.read_only(directory),
            Err(_) => Err(OtherReason),
        }
    }

    /// The same, as far as this sandbox alone is asked.
    pub(super) fn change_names(
        &self,
        directory: BorrowedFd<'_>,
        node: &Node,
    ) -> Result<Answer, OtherReason> {
        match self.view.lets_change(directory, node, true)? {
            true => Ok(Answer::Allowed),
            false if self.view.own_mounts() => self.read_only(directory),
            false => Ok(Answer::Refused(LANDLOCK)),
        }
    }

    /// Opens an existing file to write.
    fn write(
        &self,
        file: BorrowedFd<'_>,
        node: &Node,
        wanted: AccessFlags,
    ) -> Result<Answer, OtherReason> {
        match access::check(file, wanted) {
            Err(Errno::EROFS) => self.read_only(file),
            Err(_) => Err(OtherReason),
            Ok(()) => {
                // A pipe or the like, which only a link of /proc leads to.
                if !self.view.has_mount(node, file) {
                    return Err(OtherReason);
                }
                if is_device(node) && self.view.own_mounts() && has_no_devices(file) {
                    return self.no_device(file);
                }
                // Devices and fifos may be written on a read-only mount, as far as Landlock lets.
                if self.view.is_below_roots(file, node, true)? {
                    return Err(OtherReason);
                }
                Ok(Answer::Refused(LANDLOCK))
            }
        }
    }

    /// Changes metadata, which only mounts govern.
    fn write_metadata(&self, file: BorrowedFd<'_>, node: &Node) -> Result<Answer, OtherReason> {
        let writable = self.view.lets_change(file, node, true)?;
        if writable || !self.view.has_mount(node, file) {
            return Err(OtherReason);
        }
        self.read_only(file)
    }

    /// A device does not open inside: does it outside?
    fn no_device(&self, file: BorrowedFd<'_>) -> Result<Answer, OtherReason> {
        let path = self.view.name_of(file)?;
        match self.view.on_host(Path::new(&path)) {
            Ok(outside) if has_no_devices(outside.as_fd()) => Err(OtherReason),
            _ => Ok(Answer::Refused(Refusal { errno: Errno::EACCES, layer: Layer::Mount })),
        }
    }

    /// Something is read-only inside: is it so outside?
    pub(super) fn read_only(&self, file: BorrowedFd<'_>) -> Result<Answer, OtherReason> {
        if !self.view.own_mounts() {
            return Err(OtherReason);
        }
        let refused = Answer::Refused(Refusal { errno: Errno::EROFS, layer: Layer::Mount });
        let path = self.view.name_of(file)?;
        let Ok(outside) = self.view.on_host(Path::new(&path)) else {
            // A process of the command's own, or a node of its own /dev: outside they would be
            // others, that may be written as these.
            return Ok(refused);
        };
        match is_read_only(outside.as_fd()) {
            true => Err(OtherReason),
            false => Ok(refused),
        }
    }
}

pub(super) const LANDLOCK: Refusal = Refusal { errno: Errno::EACCES, layer: Layer::Landlock };

pub(super) fn refusal(answer: Answer, at: Location) -> Option<(Refusal, Location)> {
    match answer {
        Answer::Refused(refusal) => Some((refusal, at)),
        Answer::Allowed => None,
    }
}

/// Whether a directory has no entries, as far as the caller may read it; else it is taken to have
/// some.
pub(super) fn is_empty(directory: BorrowedFd<'_>) -> bool {
    use nix::fcntl::{OFlag, openat};
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let opened = openat(directory, ".", flags, nix::sys::stat::Mode::empty());
    let Ok(opened) = opened else { return false };
    let Ok(mut entries) = nix::dir::Dir::from_fd(opened) else { return false };
    entries.iter().flatten().all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
}
