//! Two names at once: links and renames, link(2) and rename(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dsh_facts::Layer;
use dsh_kernel::node::{self, Node};
use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::libc;

use super::judge::{Answer, Judge, Judged, OtherReason, Refusal, is_empty, refusal};
use super::locate::Location;
use super::ownership;
use super::view::open_at;

impl Judge<'_> {
    pub(super) fn link(&self, old: Location, new: Location) -> Judged {
        let Some((source, node)) = &old.node else { return Err(OtherReason) };
        if node.kind() == libc::S_IFDIR {
            return Err(OtherReason);
        }
        ownership::may_link(self.identity, source.as_fd(), node)?;
        let (None, Some((parent, parent_node)), false) = (&new.node, &new.parent, new.directory)
        else {
            return Err(OtherReason);
        };
        let answer = self.change_directory(parent.as_fd(), parent_node)?;
        if node.mount != parent_node.mount {
            // From another file system there is no link outside either.
            let across = self.across(&old, &new)?;
            let answer = if answer == Answer::Allowed { across } else { answer };
            return Ok(refusal(answer, new));
        }
        if answer != Answer::Allowed {
            return Ok(refusal(answer, new));
        }
        if !self.view.own_mounts() && !self.view.is_below_roots(source.as_fd(), node, true)? {
            // The new directory may be changed, and the file may not be referred to from there.
            let across = Refusal { errno: Errno::EXDEV, layer: Layer::Landlock };
            return Ok(Some((across, new)));
        }
        Err(OtherReason)
    }

    pub(super) fn rename(&self, flags: u32, old: Location, new: Location) -> Judged {
        const KNOWN: u32 = libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE | libc::RENAME_WHITEOUT;
        let exchange = flags & libc::RENAME_EXCHANGE != 0;
        let (Some((file, node)), Some((from, from_node)), Some((to, to_node))) =
            (&old.node, &old.parent, &new.parent)
        else {
            return Err(OtherReason);
        };
        let is_directory = node.kind() == libc::S_IFDIR;
        if flags & !KNOWN != 0
            || (exchange && flags != libc::RENAME_EXCHANGE)
            || (new.directory && !is_directory && !exchange)
        {
            return Err(OtherReason);
        }
        match &new.node {
            None if exchange => return Err(OtherReason),
            Some(_) if flags & libc::RENAME_NOREPLACE != 0 => return Err(OtherReason),
            // Two names of one file: nothing is done, which needs no rights but those of mounts.
            Some((_, there)) if (there.device, there.inode) == (node.device, node.inode) => {
                let first = self.change_names(from.as_fd(), from_node)?;
                let second = self.change_names(to.as_fd(), to_node)?;
                return self.between(first, second, old, new);
            }
            Some((there_file, there)) if !exchange => {
                let there_is_directory = there.kind() == libc::S_IFDIR;
                if there_is_directory != is_directory
                    || (there_is_directory && !is_empty(there_file.as_fd()))
                {
                    return Err(OtherReason);
                }
            }
            _ => {}
        }
        if is_directory && self.is_above(node, to.as_fd(), to_node)? {
            return Err(OtherReason);
        }
        // A directory that is not empty without an exchange is judged already.
        if let (true, Some((_, there))) = (exchange, &new.node)
            && there.kind() == libc::S_IFDIR
            && self.is_above(there, from.as_fd(), from_node)?
        {
            return Err(OtherReason);
        }
        let first = self.remove_name(&old, None)?;
        let second = self.change_directory(to.as_fd(), to_node)?;
        if let Some((_, there)) = &new.node {
            ownership::may_remove(self.identity, to_node, there)?;
        }
        if (from_node.device, from_node.inode) != (to_node.device, to_node.inode) {
            ownership::may_move(file.as_fd(), node)?;
            if let (true, Some((there_file, there))) = (exchange, &new.node) {
                ownership::may_move(there_file.as_fd(), there)?;
            }
        }
        self.between(first, second, old, new)
    }

    /// Two names, and what stands in the way of either in its directory.
    fn between(&self, first: Answer, second: Answer, old: Location, new: Location) -> Judged {
        let mount = |location: &Location| location.parent.as_ref().map(|(_, node)| node.mount);
        if mount(&old) != mount(&new) {
            let answer = self.across(&old, &new)?;
            return Ok(refusal(answer, if first == Answer::Allowed { new } else { old }));
        }
        match (first, second) {
            (Answer::Refused(_), _) => Ok(refusal(first, old)),
            (_, Answer::Refused(_)) => Ok(refusal(second, new)),
            _ => Err(OtherReason),
        }
    }

    /// Whether a directory is, or holds, another.
    fn is_above(
        &self,
        upper: &Node,
        lower: BorrowedFd<'_>,
        lower_node: &Node,
    ) -> Result<bool, OtherReason> {
        let mut now = *lower_node;
        let mut here: Option<OwnedFd> = None;
        loop {
            if (now.device, now.inode) == (upper.device, upper.inode) {
                return Ok(true);
            }
            let from = here.as_ref().map_or(lower, AsFd::as_fd);
            let above = open_at(from, Path::new(".."), OFlag::O_DIRECTORY, ResolveFlag::empty())?;
            let next = node::of_file(above.as_fd())?;
            if (next.mount, next.inode, next.device) == (now.mount, now.inode, now.device) {
                return Ok(false);
            }
            now = next;
            here = Some(above);
        }
    }

    /// Two mounts inside: refused by this sandbox if they are one outside.
    fn across(&self, old: &Location, new: &Location) -> Result<Answer, OtherReason> {
        let outside = |location: &Location| {
            let path = location.path(|file| self.view.name_of(file));
            let parent = Path::new(&path).parent().unwrap_or(Path::new("/"));
            self.view.on_host(parent).and_then(|file| node::of_file(file.as_fd()))
        };
        if !self.view.own_mounts() || outside(old)?.mount != outside(new)?.mount {
            return Err(OtherReason);
        }
        Ok(Answer::Refused(Refusal { errno: Errno::EXDEV, layer: Layer::Mount }))
    }
}
