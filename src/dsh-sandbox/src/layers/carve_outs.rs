//! Hidden, protected and pinned places: mounts over the finished tree, outermost first.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dsh_kernel::mount::{self, Attributes, NODEV, NOEXEC, NOSUID, RDONLY, Reach};
use dsh_kernel::node;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};

use crate::carve_outs::{CarveOut, Treatment};
use crate::error::{LayerError, Step};
use crate::layers::read_only::set_read_only;
use crate::layers::remount;
use crate::layers::tree::{LAYER, mount_tmpfs};
use crate::walk::open_node;

const DIRECTORY: &str = "directory";
const FILE: &str = "file";

/// An empty directory and an empty file that nobody may open, to be put in the place of others.
pub(crate) struct Masks {
    place: OwnedFd,
}

impl Masks {
    /// Makes them on /dev, which the sandbox's own /dev is about to cover, where some are needed.
    pub(crate) fn make(carve_outs: &[CarveOut]) -> Result<Option<Self>, LayerError> {
        if !carve_outs.iter().any(|one| one.treatment == Treatment::Hidden) {
            return Ok(None);
        }
        let dev = Path::new("/dev");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount_tmpfs(dev, flags, "size=4k,nr_inodes=4,mode=0700")
            .map_err(|error| error.at("masks"))?;
        mkdirat(AT_FDCWD, &dev.join(DIRECTORY), Mode::empty()).step(LAYER, "mkdir")?;
        File::options()
            .write(true)
            .create_new(true)
            .mode(0o000)
            .open(dev.join(FILE))
            .step(LAYER, "create")?;
        set_read_only(dev, RDONLY | NOSUID | NODEV | NOEXEC)?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Some(Self { place: open(dev, flags, Mode::empty()).step(LAYER, "open")? }))
    }

    /// The mask for a place.
    fn over(&self, place: &OwnedFd) -> Result<OwnedFd, LayerError> {
        let kind = fstat(place).step(LAYER, "fstat")?.st_mode & SFlag::S_IFMT.bits();
        let name = if kind == SFlag::S_IFDIR.bits() { DIRECTORY } else { FILE };
        mount::clone_tree(self.place.as_fd(), name, Reach::One).step(LAYER, "open_tree")
    }
}

/// The mounts that hide and protect, by their numbers.
#[derive(Default)]
pub(crate) struct Applied {
    places: Vec<(OsString, u64)>,
}

impl Applied {
    /// The places that are covered no more: the kernel detaches a mount when somebody outside
    /// renames over what is below it, or removes that. Nothing is opened for it.
    pub(crate) fn uncovered(self) -> Vec<OsString> {
        let gone = |(path, number): &(OsString, u64)| {
            node::of_name(Path::new(path)).is_ok_and(|now| now.mount != *number)
        };
        self.places.into_iter().filter(gone).map(|(path, _)| path).collect()
    }
}

/// Mounts the carve-outs of a plan.
pub(crate) fn apply(carve_outs: &[CarveOut], masks: Option<&Masks>) -> Result<Applied, LayerError> {
    let mut applied = Applied::default();
    for one in carve_outs {
        apply_one(one, masks).map_err(|error| error.at(&one.path))?;
    }
    for one in carve_outs.iter().filter(|one| one.treatment > Treatment::Pinned) {
        // Below Linux 5.8 the number cannot be had.
        if let Ok(node::Node { mount: number, .. }) = node::of_name(Path::new(&one.path)) {
            applied.places.push((one.path.clone(), number));
        }
    }
    Ok(applied)
}

fn apply_one(one: &CarveOut, masks: Option<&Masks>) -> Result<(), LayerError> {
    let path = Path::new(&one.path);
    let place = match open_node(path) {
        Ok(place) => place,
        // Gone since, covered by a mount of ours, or behind what this caller cannot search: out of
        // the command's reach too.
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => return Ok(()),
        Err(errno) => return Err(LayerError::new(LAYER, "open", errno)),
    };
    if one.treatment == Treatment::Hidden {
        let masks = masks.ok_or_else(|| LayerError::new(LAYER, "masks", Errno::EINVAL))?;
        return put(masks.over(&place)?, &place);
    }
    let tree = mount::clone_tree(place.as_fd(), "", Reach::Recursive).step(LAYER, "open_tree")?;
    if one.treatment == Treatment::Pinned {
        return put(tree, &place);
    }
    let set = RDONLY | NOSUID | NODEV;
    let attributes = Attributes { set, private: true };
    match mount::set_attributes(tree.as_fd(), "", Reach::Recursive, attributes) {
        Ok(()) => put(tree, &place),
        // Below Linux 5.12.
        Err(Errno::ENOSYS) => {
            put(tree, &place)?;
            remount::add_flags_below(path, set)
        }
        Err(errno) => Err(LayerError::new(LAYER, "mount_setattr", errno)),
    }
}

fn put(tree: OwnedFd, place: &OwnedFd) -> Result<(), LayerError> {
    mount::attach(tree.as_fd(), place.as_fd()).step(LAYER, "move_mount")
}
