//! Where a path leads in a world, as path_resolution(7) has it.

use nix::errno::Errno;

use crate::world::{Kind, Place, World};

/// A walk along a path.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Every directory and link that was passed or reached, but the root.
    pub(crate) passed: Vec<Place>,
    /// Every directory in which a name was looked up.
    pub(crate) asked: Vec<Place>,
    /// Where it ends; or the errno, and the place that could not be passed.
    pub(crate) end: Result<Place, (Errno, Place)>,
}

/// Who walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walker {
    /// Root searches any directory.
    pub(crate) is_root: bool,
}

impl Walker {
    /// Whether the walker may search a directory.
    pub(crate) fn may_search(self, world: &World, place: Place) -> bool {
        self.is_root || *world.kind(place.node) != Kind::Directory { closed: true }
    }

    /// Walks an absolute path. As the kernel does, which asks for permission to go up too.
    pub(crate) fn walk(self, world: &World, path: &str) -> Walk {
        self.start(world, path, true)
    }

    /// The same, but `..` out of a closed directory is no hindrance: what it leads to is there.
    pub(crate) fn walk_leniently(self, world: &World, path: &str) -> Walk {
        self.start(world, path, false)
    }

    fn start(self, world: &World, path: &str, strict: bool) -> Walk {
        let end = Ok(world.root());
        let mut walk = Walk { passed: Vec::new(), asked: Vec::new(), end };
        walk.end = self.follow(world, world.root(), path, strict, &mut 0, &mut walk);
        walk
    }

    fn follow(
        self,
        world: &World,
        start: Place,
        path: &str,
        strict: bool,
        links: &mut u32,
        walk: &mut Walk,
    ) -> Result<Place, (Errno, Place)> {
        let mut here = if path.starts_with('/') { world.root() } else { start };
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if !matches!(world.kind(here.node), Kind::Directory { .. }) {
                return Err((Errno::ENOTDIR, here));
            }
            if !self.may_search(world, here) && (strict || name != "..") {
                return Err((Errno::EACCES, here));
            }
            if name == ".." {
                here = world.up(here);
                continue;
            }
            walk.asked.push(here);
            let Some(next) = world.child(here, name) else { return Err((Errno::ENOENT, here)) };
            match world.kind(next.node) {
                Kind::File => here = next,
                Kind::Directory { .. } => {
                    walk.passed.push(next);
                    here = next;
                }
                Kind::Link(target) => {
                    walk.passed.push(next);
                    *links += 1;
                    if *links > 40 {
                        return Err((Errno::ELOOP, next));
                    }
                    let target = target.clone();
                    here = self.follow(world, here, &target, strict, links, walk)?;
                }
            }
        }
        Ok(here)
    }
}
