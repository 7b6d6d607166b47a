//! A copy of a directory tree in memory: files, symbolic links, and the mounts that show them.
//!
//! Everything is found by looking through all of it, so that nothing can be out of date.

/// A file, directory or link, in whichever file system.
pub(crate) type Node = usize;

/// A node as one mount shows it. A node has a place for each mount that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) mount: usize,
    pub(crate) node: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Closed: without permission to list or search it.
    Directory {
        closed: bool,
    },
    File,
    /// With its target.
    Link(String),
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    /// None of a file system's root.
    parent: Option<Node>,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Mount {
    root: Node,
    /// None of the first.
    at: Option<Place>,
}

/// A tree with its mounts.
#[derive(Clone, Debug)]
pub(crate) struct World {
    entries: Vec<Entry>,
    mounts: Vec<Mount>,
    base: Node,
}

pub(crate) const OPEN: Kind = Kind::Directory { closed: false };

impl World {
    /// A tree that is empty below this absolute path of plain directories.
    pub(crate) fn new(base: &str) -> Self {
        let root = Entry { name: String::new(), parent: None, kind: OPEN };
        let mounts = vec![Mount { root: 0, at: None }];
        let mut world = Self { entries: vec![root], mounts, base: 0 };
        for name in base.split('/').filter(|name| !name.is_empty()) {
            world.base = world.add(world.base, name, OPEN);
        }
        world
    }

    /// Adds something to a directory.
    pub(crate) fn add(&mut self, directory: Node, name: &str, kind: Kind) -> Node {
        self.entries.push(Entry { name: name.to_owned(), parent: Some(directory), kind });
        self.entries.len() - 1
    }

    /// Mounts a new file system, which is empty, and tells its root.
    pub(crate) fn mount_new(&mut self, at: Place) -> Node {
        self.entries.push(Entry { name: String::new(), parent: None, kind: OPEN });
        let root = self.entries.len() - 1;
        self.mounts.push(Mount { root, at: Some(at) });
        root
    }

    /// mount(8) `--bind`, or `--rbind` with what is mounted below.
    pub(crate) fn bind(&mut self, source: Place, at: Place, recursively: bool) {
        let before = self.mounts.len();
        self.mounts.push(Mount { root: source.node, at: Some(at) });
        if recursively {
            self.copy_mounts(source, before, before);
        }
    }

    /// Copies the mounts below a place, of those that were there before, to another mount.
    fn copy_mounts(&mut self, below: Place, to: usize, before: usize) {
        for id in 0..before {
            let Some(at) = self.mounts[id].at else { continue };
            if at.mount == below.mount && self.is_within(at.node, below.node) {
                let root = self.mounts[id].root;
                self.mounts.push(Mount { root, at: Some(Place { mount: to, node: at.node }) });
                let copy = self.mounts.len() - 1;
                self.copy_mounts(Place { mount: id, node: root }, copy, before);
            }
        }
    }

    /// Whether a node is another or lies below it, in their file system.
    fn is_within(&self, node: Node, outer: Node) -> bool {
        node == outer || self.entries[node].parent.is_some_and(|up| self.is_within(up, outer))
    }

    pub(crate) fn kind(&self, node: Node) -> &Kind {
        &self.entries[node].kind
    }

    pub(crate) fn close(&mut self, node: Node) {
        self.entries[node].kind = Kind::Directory { closed: true };
    }

    pub(crate) fn retarget(&mut self, node: Node, target: String) {
        self.entries[node].kind = Kind::Link(target);
    }

    /// The whole host's root.
    pub(crate) fn root(&self) -> Place {
        Place { mount: 0, node: 0 }
    }

    /// The directory that holds the tree.
    pub(crate) fn base(&self) -> Place {
        Place { mount: 0, node: self.base }
    }

    /// What is seen at a place: the last of the mounts there.
    fn seen(&self, place: Place) -> Place {
        match self.mounts.iter().rposition(|mount| mount.at == Some(place)) {
            None => place,
            Some(mount) => self.seen(Place { mount, node: self.mounts[mount].root }),
        }
    }

    /// What a directory has by a name.
    pub(crate) fn child(&self, directory: Place, name: &str) -> Option<Place> {
        let is = |entry: &Entry| entry.parent == Some(directory.node) && entry.name == name;
        let node = self.entries.iter().position(is)?;
        Some(self.seen(Place { mount: directory.mount, node }))
    }

    /// Whether a place is where something is mounted.
    pub(crate) fn is_mount(&self, place: Place) -> bool {
        place.mount != 0 && self.mounts[place.mount].root == place.node
    }

    /// Whether something is mounted on a node by one of its names.
    pub(crate) fn is_mounted_on(&self, node: Node) -> bool {
        self.mounts.iter().any(|mount| mount.at.is_some_and(|at| at.node == node))
    }

    /// The directory that holds a place; the root's is itself.
    pub(crate) fn up(&self, place: Place) -> Place {
        let mount = &self.mounts[place.mount];
        if place.node == mount.root {
            return mount.at.map_or(place, |at| self.up(at));
        }
        match self.entries[place.node].parent {
            None => place,
            Some(node) => self.seen(Place { mount: place.mount, node }),
        }
    }

    /// The name of a place in the directory that holds it.
    fn name(&self, place: Place) -> &str {
        let mount = &self.mounts[place.mount];
        match mount.at {
            Some(at) if place.node == mount.root => self.name(at),
            _ => &self.entries[place.node].name,
        }
    }

    /// The absolute path of a place.
    pub(crate) fn path(&self, place: Place) -> String {
        let up = self.up(place);
        if up == place {
            return "/".to_owned();
        }
        format!("{}/{}", self.path(up).trim_end_matches('/'), self.name(place))
    }

    /// A place, and all below it that can be seen.
    pub(crate) fn below(&self, place: Place) -> Vec<Place> {
        let mut places = vec![place];
        for entry in self.entries.iter().filter(|entry| entry.parent == Some(place.node)) {
            if let Some(child) = self.child(place, &entry.name) {
                places.extend(self.below(child));
            }
        }
        places
    }

    /// A node and all below it in its file system, be it covered or not.
    pub(crate) fn contents(&self, node: Node) -> Vec<Node> {
        (0..self.entries.len()).filter(|one| self.is_within(*one, node)).collect()
    }

    /// Every place that can be seen in the tree.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.below(self.base())
    }

    /// Whether a place is another or lies below it, by its path.
    pub(crate) fn is_below(&self, place: Place, outer: Place) -> bool {
        place == outer || (self.up(place) != place && self.is_below(self.up(place), outer))
    }
}
