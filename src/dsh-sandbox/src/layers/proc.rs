//! /proc of the command's own pid namespace, all of it read-only.
//!
//! For a root caller hundreds of files in /proc can be opened for writing by user id alone, and
//! core_pattern among them names a program that the host runs.

use std::os::fd::AsFd;
use std::path::Path;

use dsh_facts::Layer;
use dsh_kernel::mount::{self, NODEV, NOEXEC, NOSUID, RDONLY, Reach};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MsFlags, mount as mount_file_system};

use crate::error::{LayerError, Step};
use crate::layers::read_only::set_read_only;
use crate::layers::tree::open_canonical;

const LAYER: Layer = Layer::Proc;
const PID_MAX: &str = "/proc/sys/kernel/pid_max";

/// Files that tell about the kernel's memory, keys and timers, or the whole machine's.
const MASKED: [&str; 9] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kallsyms",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/timer_list",
    "/proc/slabinfo",
];

/// Mounts the /proc of the pid namespace that the process is in. `EPERM` where the caller's own
/// /proc is partly masked, as in a container: the kernel shows no more than is already seen.
pub(crate) fn mount_own(pid_max: Option<u32>) -> Result<(), LayerError> {
    let place = Path::new("/proc");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount_file_system(Some("proc"), place, Some("proc"), flags, None::<&str>)
        .step(LAYER, "mount proc")?;
    if let Some(limit) = pid_max {
        // The plan asks for it only where the kernel keeps one per pid namespace.
        std::fs::write(PID_MAX, limit.to_string())
            .step(Layer::Limits, "write")
            .map_err(|error| error.at(PID_MAX))?;
    }
    mask()?;
    set_read_only(place, RDONLY | NOSUID | NODEV | NOEXEC)
        .map_err(|error| LayerError { layer: LAYER, ..error })
}

/// Hides single files of the /proc in sight behind /dev/null.
pub(crate) fn mask() -> Result<(), LayerError> {
    for path in MASKED {
        let target = match open_canonical(AT_FDCWD, Path::new(path)) {
            Ok(target) => target,
            Err(Errno::ENOENT) => continue,
            Err(errno) => return Err(LayerError::new(LAYER, "open", errno).at(path)),
        };
        let null = mount::clone_tree(AT_FDCWD, "/dev/null", Reach::One)
            .step(LAYER, "open_tree")
            .map_err(|error| error.at("/dev/null"))?;
        mount::attach(null.as_fd(), target.as_fd())
            .step(LAYER, "move_mount")
            .map_err(|error| error.at(path))?;
    }
    Ok(())
}
