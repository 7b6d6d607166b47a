//! The sandbox's own /dev: the nodes that every program expects, and nothing else.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use dsh_kernel::mount::{self, Attributes, NOEXEC, NOSUID, RDONLY, Reach};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::mount::{MsFlags, mount as mount_file_system};
use nix::sys::stat::{Mode, mkdirat};

use crate::error::{LayerError, Step};
use crate::layers::remount;
use crate::layers::tree::{LAYER, attach, mount_tmpfs};

const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Clones of the host's nodes, by their name in the new /dev.
pub(crate) struct HostDevices {
    nodes: Vec<(OsString, OwnedFd)>,
}

/// Clones the host's nodes, while their mounts still allow devices. The caller's terminal becomes
/// /dev/console.
pub(crate) fn clone_host_devices(terminal: Option<&OsString>) -> Result<HostDevices, LayerError> {
    let mut nodes = Vec::with_capacity(NODES.len() + 1);
    let named = NODES.iter().map(|name| (OsStr::new(*name), Path::new("/dev").join(name)));
    let terminal = terminal.map(|path| (OsStr::new("console"), Path::new(path).to_owned()));
    for (name, path) in named.chain(terminal) {
        match mount::clone_tree(AT_FDCWD, &path, Reach::One) {
            Ok(tree) => nodes.push((name.to_owned(), tree)),
            // A host without the node: the sandbox is without it too.
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(LayerError::new(LAYER, "open_tree", errno).at(path)),
        }
    }
    Ok(HostDevices { nodes })
}

/// Mounts the new /dev, read-only in the end: a device on a read-only mount still takes writes, but
/// its mode and owner, which are the host node's, do not change.
pub(crate) fn set_up(devices: HostDevices) -> Result<(), LayerError> {
    let dev = Path::new("/dev");
    mount_tmpfs(dev, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, "size=64k,nr_inodes=64,mode=0755")?;
    for name in ["pts", "shm"] {
        mkdirat(AT_FDCWD, &dev.join(name), Mode::from_bits_truncate(0o755))
            .step(LAYER, "mkdir")
            .map_err(|error| error.at(dev.join(name)))?;
    }
    for (target, name) in LINKS {
        symlink(target, dev.join(name))
            .step(LAYER, "symlink")
            .map_err(|error| error.at(dev.join(name)))?;
    }
    for (name, tree) in &devices.nodes {
        let place = dev.join(name);
        open(
            &place,
            OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC,
            Mode::from_bits_truncate(0o444),
        )
        .step(LAYER, "create")
        .map_err(|error| error.at(&place))?;
        attach(tree.as_fd(), &place)?;
    }
    mount_file_system(
        Some("devpts"),
        &dev.join("pts"),
        Some("devpts"),
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        Some("newinstance,ptmxmode=0666,mode=0620"),
    )
    .step(LAYER, "mount devpts")?;
    let read_only = Attributes { set: RDONLY | NOSUID | NOEXEC, private: true };
    match mount::set_attributes(AT_FDCWD, dev, Reach::Recursive, read_only) {
        Ok(()) => Ok(()),
        Err(Errno::ENOSYS) => remount::add_flags_below(dev, read_only.set),
        Err(errno) => Err(LayerError::new(LAYER, "mount_setattr", errno).at(dev)),
    }
}
