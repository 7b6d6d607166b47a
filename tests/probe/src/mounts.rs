//! The mount family, old and new calls, and the mounts that the host makes while a command runs.

use std::io::{BufRead, Write};

use crate::args::path;
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::numbers::OPEN_TREE_ATTR;
use crate::sys::{Arg, CWD, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("bind-over", bind_over),
    ("fsmount", fsmount),
    ("fsopen", fsopen),
    ("fspick", fspick),
    ("late-mount", late_mount),
    ("mount-setattr-clear-rdonly", mount_setattr_clear_rdonly),
    ("mount-tmpfs", mount_tmpfs),
    ("move-mount", move_mount),
    ("open-tree", open_tree),
    ("open-tree-attr", open_tree_attr),
    ("pivot-root", pivot_root),
    ("remount", remount),
    ("umount", umount),
];

const OPEN_TREE_CLONE: i64 = 1;
const AT_RECURSIVE: i64 = 0x8000;
const MOUNT_ATTR_RDONLY: u64 = 1;

/// `remount PATH`: read-write again, by the bind remount that needs no file system to agree.
fn remount(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let flags = Arg::Int((libc::MS_REMOUNT | libc::MS_BIND).cast_signed());
    let arguments = vec![NONE, Arg::Path(&path), NONE, flags, NONE];
    trail.step("mount", call(libc::SYS_mount, arguments))?;
    Ok(())
}

/// `mount-tmpfs PATH`
fn mount_tmpfs(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let kind = c"tmpfs";
    let arguments = vec![Arg::Path(kind), Arg::Path(&path), Arg::Path(kind), NONE, NONE];
    trail.step("mount", call(libc::SYS_mount, arguments))?;
    Ok(())
}

/// `bind-over SOURCE TARGET`
fn bind_over(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (source, target) = (path(arguments, 0)?, path(arguments, 1)?);
    let flags = Arg::Int(libc::MS_BIND.cast_signed());
    let arguments = vec![Arg::Path(&source), Arg::Path(&target), NONE, flags, NONE];
    trail.step("mount", call(libc::SYS_mount, arguments))?;
    Ok(())
}

/// `umount PATH`
fn umount(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let arguments = vec![Arg::Path(&path), Arg::Int(i64::from(libc::MNT_DETACH))];
    trail.step("umount2", call(libc::SYS_umount2, arguments))?;
    Ok(())
}

/// `pivot-root DIR`
fn pivot_root(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let dir = path(arguments, 0)?;
    let arguments = vec![Arg::Path(&dir), Arg::Path(&dir)];
    trail.step("pivot_root", call(libc::SYS_pivot_root, arguments))?;
    Ok(())
}

/// `open-tree PATH`: a clone of a mount, which could then be changed and attached.
fn open_tree(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(OPEN_TREE_CLONE | AT_RECURSIVE)];
    trail.step("open_tree", call(libc::SYS_open_tree, arguments))?;
    Ok(())
}

/// `open-tree-attr PATH`: the same, already writable.
fn open_tree_attr(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, attributes) = (path(arguments, 0)?, words(&[0, MOUNT_ATTR_RDONLY, 0, 0]));
    let flags = Arg::Int(OPEN_TREE_CLONE | AT_RECURSIVE);
    let arguments = vec![CWD, Arg::Path(&path), flags, Arg::In(&attributes), Arg::Int(32)];
    trail.step("open_tree_attr", call(OPEN_TREE_ATTR, arguments))?;
    Ok(())
}

/// `move-mount FROM TO`
fn move_mount(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (from, to) = (path(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![CWD, Arg::Path(&from), CWD, Arg::Path(&to), NONE];
    trail.step("move_mount", call(libc::SYS_move_mount, arguments))?;
    Ok(())
}

/// `mount-setattr-clear-rdonly PATH`
fn mount_setattr_clear_rdonly(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, attributes) = (path(arguments, 0)?, words(&[0, MOUNT_ATTR_RDONLY, 0, 0]));
    let flags = Arg::Int(AT_RECURSIVE);
    let arguments = vec![CWD, Arg::Path(&path), flags, Arg::In(&attributes), Arg::Int(32)];
    trail.step("mount_setattr", call(libc::SYS_mount_setattr, arguments))?;
    Ok(())
}

/// `fsopen KIND`
fn fsopen(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let kind = path(arguments, 0)?;
    trail.step("fsopen", call(libc::SYS_fsopen, vec![Arg::Path(&kind), NONE]))?;
    Ok(())
}

/// `fsmount`: of a descriptor that cannot be right, so that only a filter answers EPERM to it.
fn fsmount(trail: &mut Trail, _: &[String]) -> Outcome {
    let arguments = vec![Arg::Int(-1), NONE, NONE];
    trail.step("fsmount", call(libc::SYS_fsmount, arguments))?;
    Ok(())
}

/// `fspick PATH`: reconfigures a superblock, which would reach the host's own mounts.
fn fspick(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("fspick", call(libc::SYS_fspick, vec![CWD, Arg::Path(&path), NONE]))?;
    Ok(())
}

/// `late-mount MARKER`: says on stderr that it runs, waits for a line on stdin, and then looks for
/// a file of a mount that the host has made in between.
fn late_mount(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let marker = path(arguments, 0)?;
    let wait = |error| Stop::Misuse(format!("cannot wait for the host: {error}"));
    std::io::stderr().write_all(b"ready\n").map_err(wait)?;
    std::io::stdin().lock().read_line(&mut String::new()).map_err(wait)?;
    let flags = Arg::Int(i64::from(libc::O_RDWR));
    trail.step("openat", call(libc::SYS_openat, vec![CWD, Arg::Path(&marker), flags]))?;
    Ok(())
}
