//! The writable roots: cloned from the host's tree before it becomes read-only, put back on top.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use dsh_kernel::mount::{self, Attributes, NODEV, NOSUID, RDONLY, Reach};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::MsFlags;
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat};

use crate::error::LayerError;
use crate::layers::read_only::set_read_only;
use crate::layers::remount;
use crate::layers::tree::{LAYER, attach, mount_tmpfs, open_canonical};
use crate::plan::MountPlan;
use crate::root::Root;

/// A root as a detached tree.
pub(crate) struct ClonedRoot {
    path: PathBuf,
    tree: OwnedFd,
    /// Flags still to be added once it is attached, on kernels that cannot before.
    pending: Option<u64>,
    interfaces: Vec<OsString>,
}

/// Clones every root of the plan.
pub(crate) fn clone_all(plan: &MountPlan) -> Result<Vec<ClonedRoot>, LayerError> {
    let shown = plan.shown.iter().map(|root| (root, RDONLY | NOSUID | NODEV, &[][..]));
    let writable = plan.writable.iter().map(|one| (&one.root, NOSUID | NODEV, &one.interfaces[..]));
    shown.chain(writable).map(|(root, flags, keep)| clone_one(root, flags, keep)).collect()
}

fn clone_one(root: &Root, flags: u64, interfaces: &[OsString]) -> Result<ClonedRoot, LayerError> {
    let failed = |step, errno| LayerError::new(LAYER, step, errno).at(&root.path);
    let directory = open_canonical(AT_FDCWD, root.path()).map_err(|errno| failed("open", errno))?;
    let found = fstat(&directory).map_err(|errno| failed("fstat", errno))?;
    if !is(&found, root) {
        // Another directory has taken the name since the plan was made.
        return Err(failed("compare", Errno::ESTALE));
    }
    let tree = mount::clone_tree(directory.as_fd(), "", Reach::Recursive)
        .map_err(|errno| failed("open_tree", errno))?;
    // A clone has none of the flags that everything else gets, and still propagates.
    let attributes = Attributes { set: flags, private: true };
    let pending = match mount::set_attributes(tree.as_fd(), "", Reach::Recursive, attributes) {
        Ok(()) => None,
        Err(Errno::ENOSYS) => Some(flags),
        Err(errno) => return Err(failed("mount_setattr", errno)),
    };
    Ok(ClonedRoot { path: root.path().to_owned(), tree, pending, interfaces: interfaces.to_vec() })
}

fn is(found: &FileStat, root: &Root) -> bool {
    (found.st_dev, found.st_ino) == (root.device, root.inode)
}

/// Puts the roots back in their places. Those below the scratch get mount points there first.
pub(crate) fn attach_all(roots: Vec<ClonedRoot>, plan: &MountPlan) -> Result<(), LayerError> {
    let scratches = plan.temporary.iter().map(PathBuf::from).chain([PathBuf::from("/dev/shm")]);
    for scratch in scratches {
        let below: Vec<&Path> = roots
            .iter()
            .filter_map(|root| root.path.strip_prefix(&scratch).ok())
            .filter(|relative| *relative != Path::new(""))
            .collect();
        make_mount_points(&scratch, &below)?;
    }
    for root in &roots {
        attach(root.tree.as_fd(), &root.path)?;
        if let Some(flags) = root.pending {
            remount::add_flags_below(&root.path, flags)?;
        }
        keep_interfaces_read_only(root)?;
    }
    Ok(())
}

/// Makes the mount points of roots below a scratch.
///
/// What lies between the scratch and a root is a read-only skeleton, a mount of its own: a command
/// that could rename a parent of a mount point and plant a symbolic link in its place would decide
/// where a later command's workspace is mounted (seen to put one over /etc). A mount point itself
/// cannot be renamed (EBUSY).
fn make_mount_points(scratch: &Path, below: &[&Path]) -> Result<(), LayerError> {
    let first = |path: &Path| path.components().next().map(|name| Path::new(&name).to_owned());
    let tops: BTreeSet<PathBuf> = below.iter().filter_map(|path| first(path)).collect();
    for top in tops {
        let place = scratch.join(&top);
        make_directory(&place)?;
        let deeper: Vec<&Path> = below
            .iter()
            .filter_map(|path| path.strip_prefix(&top).ok())
            .filter(|rest| *rest != Path::new(""))
            .collect();
        if deeper.is_empty() {
            continue;
        }
        mount_tmpfs(&place, MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "size=64k,mode=0755")?;
        for path in deeper {
            let mut directory = place.clone();
            for component in path.components() {
                if let Component::Normal(name) = component {
                    directory.push(name);
                    make_directory(&directory)?;
                }
            }
        }
        set_read_only(&place, RDONLY | NOSUID | NODEV)?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), LayerError> {
    match mkdirat(AT_FDCWD, path, Mode::from_bits_truncate(0o755)) {
        // Two roots with a common parent.
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(LayerError::new(LAYER, "mkdir", errno).at(path)),
    }
}

/// A root may hold the /proc or /sys of a system image: those stay read-only.
fn keep_interfaces_read_only(root: &ClonedRoot) -> Result<(), LayerError> {
    for relative in &root.interfaces {
        let place = root.path.join(relative);
        match open_canonical(AT_FDCWD, &place) {
            Ok(_) => set_read_only(&place, RDONLY | NOSUID | NODEV)?,
            // Covered by another mount or gone: out of the command's reach too.
            Err(Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR) => {}
            Err(errno) => return Err(LayerError::new(LAYER, "open", errno).at(place)),
        }
    }
    Ok(())
}
