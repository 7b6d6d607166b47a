//! What the command sees of the file system: the host read-only, the workspace writable, and /tmp,
//! /dev, /proc fresh.

use std::ffi::{CStr, OsStr, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use libc::{
    AT_EMPTY_PATH, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY,
};

use crate::sys;

/// The nodes of the fresh /dev, as they are called below it.
const NODES: [&CStr; 6] = [c"null", c"zero", c"full", c"random", c"urandom", c"tty"];

const LINKS: [(&str, &str); 5] = [
    ("pts/ptmx", "/dev/ptmx"),
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Detached mounts, taken from the host's tree before it was sealed and so free of its flags.
pub(crate) struct View {
    workspace: c_int,
    nodes: [c_int; NODES.len()],
}

impl View {
    /// Sets aside what stays writable and makes everything else read-only. Nothing in here needs an
    /// id.
    pub(crate) fn seal() -> Self {
        let workspace = sys::clone_tree(AT_FDCWD, c".", AT_RECURSIVE);
        // A clone has none of these by itself, and would go on receiving the host's mounts.
        sys::set_mount(
            workspace,
            c"",
            AT_EMPTY_PATH | AT_RECURSIVE,
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        );
        let dev = sys::open_path(c"/dev");
        let nodes = NODES.map(|node| sys::clone_tree(dev, node, 0));
        sys::close(dev);
        sys::set_mount(
            AT_FDCWD,
            c"/",
            AT_RECURSIVE,
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        );
        Self { workspace, nodes }
    }

    /// Mounts what the command gets instead of the host's own, and enters the workspace. Only init
    /// can do it: a proc mount shows the pid namespace of the process that makes it.
    pub(crate) fn furnish(&self, workspace: &CStr) {
        sys::mount(c"tmpfs", c"/tmp", MS_NOSUID | MS_NODEV, c"mode=1777");
        self.furnish_dev();
        sys::mount(c"proc", c"/proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, c"");
        if workspace.to_bytes().starts_with(b"/tmp/") {
            // The fresh /tmp hides where the workspace was.
            let path = OsStr::from_bytes(workspace.to_bytes());
            sys::ok(fs::create_dir_all(path), "mount point of the workspace");
        }
        sys::move_mount(self.workspace, AT_FDCWD, workspace);
        sys::change_directory(workspace);
    }

    fn furnish_dev(&self) {
        sys::mount(c"tmpfs", c"/dev", MS_NOSUID | MS_NOEXEC, c"mode=755");
        let dev = sys::open_path(c"/dev");
        for (node, clone) in NODES.iter().zip(self.nodes) {
            sys::make_file(dev, node);
            sys::move_mount(clone, dev, node);
        }
        sys::close(dev);
        for (target, link) in LINKS {
            sys::ok(symlink(target, link), link);
        }
        for directory in ["/dev/pts", "/dev/shm"] {
            sys::ok(fs::create_dir(directory), directory);
        }
        // All at once: the nodes are the host's inodes, and one that can be written to can also be
        // chmodded. A read-only mount does not keep anyone from writing to a device; `nodev` would.
        sys::set_mount(
            AT_FDCWD,
            c"/dev",
            AT_RECURSIVE,
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
        );
        sys::mount(c"devpts", c"/dev/pts", MS_NOSUID | MS_NOEXEC, c"newinstance,ptmxmode=0666");
        sys::mount(c"tmpfs", c"/dev/shm", MS_NOSUID | MS_NODEV, c"mode=1777");
    }
}
