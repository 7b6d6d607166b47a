//! The mount layer: the host's tree made read-only and private, with scratch, a minimal /dev and
//! the writable roots on top.
//!
//! The order matters. The writable roots are cloned first, because a read-only flag is never
//! cleared again; then everything becomes read-only in one call; then what is the sandbox's own
//! goes over it. Private, not slave: with slave propagation a disk that the host mounts later would
//! be writable inside. Nothing is ever created on the host.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use dsh_kernel::mount::{self, Attributes, NODEV, NOSUID, RDONLY, Reach};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, mkdirat};

use crate::error::{LayerError, Step};
use crate::layers::dev::{self, HostDevices};
use crate::layers::remount;
use crate::layers::tree::{LAYER, attach, mount_tmpfs};
use crate::layers::writable_roots::{self, ClonedRoot};
use crate::plan::MountPlan;

/// Inodes of the scratch: enough for a large build, and a bound on the memory that names take.
const SCRATCH_INODES: u32 = 524_288;

/// What the first half of the layer leaves for the second.
pub(crate) struct ReadOnlyTree {
    roots: Vec<ClonedRoot>,
    devices: HostDevices,
}

/// First half: the whole tree read-only and private. Files opened from here on are opened through
/// read-only mounts.
///
/// `EINVAL` for a caller in a chroot: its root is not the root of a mount, so nothing can be set on
/// it. To mount a copy of the tree over it first would, without a user namespace (which the kernel
/// refuses in a chroot), show up on the host where its mounts are shared; Landlock serves there.
pub(crate) fn make_read_only(
    plan: &MountPlan,
    terminal: Option<&OsString>,
) -> Result<ReadOnlyTree, LayerError> {
    let everything = Attributes { set: RDONLY | NOSUID | NODEV, private: true };
    let roots = writable_roots::clone_all(plan)?;
    let devices = dev::clone_host_devices(terminal)?;
    match mount::set_attributes(AT_FDCWD, "/", Reach::Recursive, everything) {
        Ok(()) => {}
        // Below Linux 5.12.
        Err(Errno::ENOSYS) => remount::everything_read_only()?,
        Err(errno) => return Err(LayerError::new(LAYER, "mount_setattr", errno).at("/")),
    }
    Ok(ReadOnlyTree { roots, devices })
}

/// Second half: what is the sandbox's own, over the read-only tree.
pub(crate) fn add_own(tree: ReadOnlyTree, plan: &MountPlan) -> Result<(), LayerError> {
    let scratch = Scratch::make(plan)?;
    dev::set_up(tree.devices)?;
    scratch.attach(plan)?;
    writable_roots::attach_all(tree.roots, plan)
}

/// The scratch: one tmpfs, so that one size bounds /tmp and /dev/shm together.
struct Scratch {
    temporary: Option<OwnedFd>,
    shared_memory: OwnedFd,
}

impl Scratch {
    /// Makes the tmpfs on /dev, which the sandbox's own /dev is about to cover: nothing in the
    /// sandbox can reach it there, and nothing has to be unmounted.
    fn make(plan: &MountPlan) -> Result<Self, LayerError> {
        let options = format!("size={},nr_inodes={SCRATCH_INODES},mode=0700", plan.scratch_size);
        mount_tmpfs(Path::new("/dev"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, &options)
            .map_err(|error| error.at("scratch"))?;
        let half = |name: &str| -> Result<OwnedFd, LayerError> {
            let place = Path::new("/dev").join(name);
            mkdirat(AT_FDCWD, &place, Mode::from_bits_truncate(0o1777)).step(LAYER, "mkdir")?;
            mount::clone_tree(AT_FDCWD, &place, Reach::One)
                .step(LAYER, "open_tree")
                .map_err(|error| error.at("scratch"))
        };
        let temporary = plan.temporary.is_some().then(|| half("tmp")).transpose()?;
        Ok(Self { temporary, shared_memory: half("shm")? })
    }

    fn attach(self, plan: &MountPlan) -> Result<(), LayerError> {
        attach(self.shared_memory.as_fd(), Path::new("/dev/shm"))?;
        if let (Some(tree), Some(place)) = (&self.temporary, &plan.temporary) {
            attach(tree.as_fd(), Path::new(place))?;
        }
        Ok(())
    }
}
