//! A world made real, and taken away again.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::generate::{Made, Mounting};
use crate::world::{Kind, World};

/// A world on disk. As root it lies in a file system of its own.
pub(crate) struct Disk<'a> {
    world: &'a World,
    base: String,
    is_mounted: bool,
}

impl<'a> Disk<'a> {
    /// Makes all that the world has.
    pub(crate) fn make(made: &'a Made, is_mounted: bool) -> io::Result<Self> {
        let world = &made.world;
        let base = world.path(world.base());
        fs::create_dir(&base)?;
        if is_mounted {
            mount_new(&base)?;
        }
        let disk = Self { world, base, is_mounted };
        for (before, mounting) in &made.stages {
            make_missing(before)?;
            match mounting {
                Mounting::New { at } => mount_new(&before.path(*at))?,
                Mounting::Bind { source, at, recursively } => {
                    let recursive = if *recursively { MsFlags::MS_REC } else { MsFlags::empty() };
                    let (source, at) = (before.path(*source), before.path(*at));
                    let none = None::<&str>;
                    mount(Some(&*source), &*at, none, MsFlags::MS_BIND | recursive, none)?;
                }
            }
        }
        make_missing(world)?;
        disk.set_modes(0o000)?;
        Ok(disk)
    }

    /// Sets the mode of every closed directory, the deepest first where it shuts them.
    fn set_modes(&self, mode: u32) -> io::Result<()> {
        let mut paths: Vec<_> = self
            .world
            .places()
            .into_iter()
            .filter(|place| *self.world.kind(place.node) == Kind::Directory { closed: true })
            .map(|place| self.world.path(place))
            .collect();
        paths.sort();
        if mode == 0 {
            paths.reverse();
        }
        paths.iter().try_for_each(|path| fs::set_permissions(path, PermissionsExt::from_mode(mode)))
    }

    /// Takes the world away.
    pub(crate) fn remove(self) -> io::Result<()> {
        if self.is_mounted {
            umount2(&*self.base, MntFlags::MNT_DETACH)?;
            return fs::remove_dir(&self.base);
        }
        self.set_modes(0o700)?;
        fs::remove_dir_all(&self.base)
    }
}

fn mount_new(at: &str) -> io::Result<()> {
    mount(Some("none"), at, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    Ok(())
}

/// Makes what is not there yet, each file with a content of its own.
fn make_missing(world: &World) -> io::Result<()> {
    for place in world.places() {
        let path = world.path(place);
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match world.kind(place.node) {
            Kind::Directory { .. } => fs::create_dir(&path)?,
            Kind::File => fs::write(&path, format!("{}\n", place.node))?,
            Kind::Link(target) => symlink(target, &path)?,
        }
    }
    Ok(())
}

/// What a file is, and when it was changed; a program that undoes its changes changes only times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) identity: (u64, u64),
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
    pub(crate) times: [i64; 4],
}

/// Looks at a file; none where this process cannot see it.
pub(crate) fn look(path: &str) -> Option<Look> {
    let found = fs::symlink_metadata(path).ok()?;
    let content = match found.file_type() {
        kind if kind.is_symlink() => {
            fs::read_link(path).ok()?.into_os_string().into_encoded_bytes()
        }
        kind if kind.is_file() => fs::read(path).ok()?,
        _ => Vec::new(),
    };
    Some(Look {
        identity: (found.dev(), found.ino()),
        mode: found.mode(),
        content,
        times: [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()],
    })
}
