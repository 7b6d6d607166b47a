//! Trees made real, and taken away.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Gid, Uid, chown, fchownat, geteuid};

use crate::draw::Drawn;
use crate::ground::{Ground, Part};
use crate::scene::{ATTRIBUTE, Kind, Node, Scene};
use crate::spelled::spell;

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Makes the ground with all the trees. `set` sets extended attributes: it is given a script for the
/// probe.
pub(crate) fn make(
    ground: &Ground,
    drawn: &[Drawn],
    user: u32,
    set: impl FnOnce(&str) -> io::Result<()>,
) -> io::Result<()> {
    fs::create_dir(ground.base())?;
    for part in Part::ALL {
        fs::create_dir(ground.part(part))?;
        own(&ground.part(part), user)?;
    }
    for stream in ground.streams() {
        fs::write(&stream, "")?;
        own(&stream, user)?;
    }
    let mut attributes = String::new();
    for (node, nodes) in drawn.iter().flat_map(|Drawn { scene: Scene { nodes, .. }, .. }| {
        nodes.iter().map(move |node| (node, nodes))
    }) {
        make_node(node, nodes, user)?;
        if node.attribute {
            // Writing to a string does not fail.
            let _ = writeln!(
                attributes,
                "cd=/ call=lsetxattr p={} p={} p=value i=5 i=0",
                spell(&node.path),
                spell(ATTRIBUTE)
            );
        }
    }
    set(&attributes)?;
    drawn.iter().flat_map(|one| one.scene.nodes.iter().rev()).try_for_each(set_rights)
}

fn make_node(node: &Node, nodes: &[Node], user: u32) -> io::Result<()> {
    let place = path(&node.path);
    let special = |kind, device| mknod(place, kind, Mode::from_bits_truncate(0o600), device);
    match &node.kind {
        Kind::Directory => {
            if let Some(above) = place.parent().filter(|above| !above.exists()) {
                fs::create_dir(above)?;
                own(above, user)?;
            }
            fs::create_dir(place)?;
        }
        Kind::File => fs::write(place, "content\n")?,
        Kind::Link(target) => symlink(path(target), place)?,
        Kind::HardLink(file) => fs::hard_link(path(&nodes[*file].path), place)?,
        Kind::Fifo => special(SFlag::S_IFIFO, 0)?,
        Kind::Socket => special(SFlag::S_IFSOCK, 0)?,
        Kind::Device => special(SFlag::S_IFCHR, makedev(1, 3))?,
    }
    Ok(())
}

fn own(place: &Path, user: u32) -> io::Result<()> {
    if geteuid().is_root() {
        chown(place, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))?;
    }
    Ok(())
}

/// Owner and mode; what a directory holds comes before it.
fn set_rights(node: &Node) -> io::Result<()> {
    let place = path(&node.path);
    if geteuid().is_root() {
        fchownat(
            nix::fcntl::AT_FDCWD,
            place,
            Some(Uid::from_raw(node.owner.0)),
            Some(Gid::from_raw(node.owner.1)),
            nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
        )?;
    }
    match node.kind {
        Kind::Link(_) | Kind::HardLink(_) => Ok(()),
        _ => fs::set_permissions(place, Permissions::from_mode(node.mode)),
    }
}

/// Takes a tree away, whatever has become of it.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    let mut pending = vec![directory.to_path_buf()];
    while let Some(one) = pending.pop() {
        fs::set_permissions(&one, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&one)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(directory)
}

/// The names of files that have further names, which a change through those changes too.
pub(crate) fn linked(drawn: &[Drawn]) -> Vec<PathBuf> {
    let mut linked = Vec::new();
    for one in drawn {
        for node in &one.scene.nodes {
            if let Kind::HardLink(file) = node.kind {
                linked.push(path(&node.path).to_path_buf());
                linked.push(path(&one.scene.nodes[file].path).to_path_buf());
            }
        }
    }
    linked
}
