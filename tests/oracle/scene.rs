//! The surroundings of one operation: a small tree in the workspace, one in the second writable
//! root and one of the host's, so that no operation can be in the way of another.

use crate::ground::{Ground, Part};
use crate::support::random::Random;

/// What a node of a tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    /// With its target.
    Link(Vec<u8>),
    /// Another name of a file.
    HardLink(usize),
    Fifo,
    Socket,
    /// A node of /dev/null.
    Device,
}

/// Something that has a name.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) part: Part,
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// User and group.
    pub(crate) owner: (u32, u32),
    pub(crate) mode: u32,
    /// Whether it has an extended attribute.
    pub(crate) attribute: bool,
}

/// The trees of one operation, each directory before what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) nodes: Vec<Node>,
    /// Who makes the operation.
    pub(crate) user: u32,
    /// Whether files can have other owners than the user.
    many_owners: bool,
    long_chain: bool,
}

/// A user who makes no operations.
pub(crate) const OTHER: u32 = 1234;

/// The attribute of files that have one.
pub(crate) const ATTRIBUTE: &[u8] = b"user.a";

/// Few, so that a name taken at random often exists.
const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
const ODD_NAMES: [&[u8]; 8] =
    [b"\xff\xfe", b"two\nlines", b" ", b"-rf", b"a\\b%", b"\xc3\xa9", b"...", &[b'n'; 255]];

const FILE_MODES: [u32; 12] =
    [0o644, 0o644, 0o644, 0o444, 0o444, 0o600, 0o600, 0o755, 0o666, 0o666, 0o000, 0o2755];
const DIRECTORY_MODES: [u32; 12] =
    [0o755, 0o755, 0o755, 0o755, 0o555, 0o555, 0o700, 0o1777, 0o1777, 0o1755, 0o777, 0o311];

impl Scene {
    /// Draws the trees of the operation of this number.
    pub(crate) fn draw(
        random: &mut Random,
        ground: &Ground,
        number: u64,
        user: u32,
        many_owners: bool,
    ) -> Self {
        let mut scene =
            Self { nodes: Vec::new(), user, many_owners, long_chain: random.percent(2) };
        for part in Part::ALL {
            let top = scene.add(part, ground.tree(part, number), Kind::Directory, random);
            if random.percent(85) {
                scene.nodes[top].owner = (user, user);
            }
            let most = if part == Part::Host { 4 } else { 3 };
            scene.fill(random, top, most, 1);
        }
        scene.aim(random);
        scene
    }

    fn add(&mut self, part: Part, path: Vec<u8>, kind: Kind, random: &mut Random) -> usize {
        let modes = if kind == Kind::Directory { &DIRECTORY_MODES } else { &FILE_MODES };
        let mode = random.one_of(modes).copied().unwrap_or(0o755);
        let attribute = matches!(kind, Kind::Directory | Kind::File) && random.percent(20);
        let owner = match random.below(100) {
            60..80 if self.many_owners => (0, 0),
            80..90 if self.many_owners => (OTHER, OTHER),
            90..100 if self.many_owners => (OTHER, self.user),
            _ => (self.user, self.user),
        };
        self.nodes.push(Node { part, path, kind, owner, mode, attribute });
        self.nodes.len() - 1
    }

    fn fill(&mut self, random: &mut Random, directory: usize, most: usize, depth: usize) {
        for name in &NAMES[..random.below(most + 1)] {
            let name = if random.percent(10) { Self::odd_name(random) } else { name };
            let part = self.nodes[directory].part;
            let path = join(&self.nodes[directory].path, name);
            if self.nodes.iter().any(|node| node.path == path) {
                continue;
            }
            let files: Vec<usize> = self.all(|node| node.kind == Kind::File);
            let kind = match (random.below(100), random.one_of(&files)) {
                (0..25, _) => Kind::Directory,
                (25..55, _) => Kind::File,
                (55..80, _) => Kind::Link(Vec::new()),
                (80..88, Some(file)) => Kind::HardLink(*file),
                (88..94, _) => Kind::Fifo,
                (94..97, _) => Kind::Socket,
                (97..100, _) if self.many_owners => Kind::Device,
                _ => Kind::File,
            };
            let made = self.add(part, path, kind.clone(), random);
            if kind == Kind::Directory && depth > 0 {
                self.fill(random, made, 2, depth - 1);
            }
        }
    }

    /// Gives the links their targets, once all is there that they can lead to.
    fn aim(&mut self, random: &mut Random) {
        for index in 0..self.nodes.len() {
            if matches!(self.nodes[index].kind, Kind::Link(_)) {
                let mut target = self.target(random, &self.nodes[index].path);
                target.truncate(4000);
                self.nodes[index].kind = Kind::Link(target);
            }
        }
        if self.long_chain {
            self.chain(random);
        }
    }

    /// Where a link of this path leads.
    fn target(&self, random: &mut Random, link: &[u8]) -> Vec<u8> {
        let here = parent(link);
        let Some(to) = random.one_of(&self.nodes) else { return b".".to_vec() };
        let new = join(&to.path, Self::new_name(random));
        let text = match random.below(100) {
            0..35 => to.path.clone(),
            35..70 => crate::support::relative::relative(here, &to.path),
            70..85 => crate::support::relative::relative(here, &new),
            85..90 => new,
            90..93 => Self::new_name(random).to_vec(),
            93..95 => link.to_vec(),
            95..97 => b"/proc/self/cwd/a".to_vec(),
            _ => [b"../", Self::new_name(random)].concat(),
        };
        if random.percent(5) { [&text[..], b"/"].concat() } else { text }
    }

    /// More links one behind the other than are followed, or just as many.
    fn chain(&mut self, random: &mut Random) {
        let Node { part, path: top, .. } = self.nodes[0].clone();
        let name = |link: usize| format!("chain{link}").into_bytes();
        let Some(to) = random.one_of(&self.nodes).map(|node| node.path.clone()) else { return };
        let length = 39 + random.below(3);
        for link in 0..length {
            let target = match link {
                0 => to.clone(),
                _ => name(link - 1),
            };
            self.add(part, join(&top, &name(link)), Kind::Link(target), random);
        }
        self.add(part, join(&top, b"chained"), Kind::Link(name(length - 1)), random);
    }

    /// A name that seldom exists.
    pub(crate) fn new_name(random: &mut Random) -> &'static [u8] {
        match random.below(100) {
            0..10 => Self::odd_name(random),
            10..25 => random.one_of(&NAMES).copied().unwrap_or(b"a"),
            _ => b"new",
        }
    }

    fn odd_name(random: &mut Random) -> &'static [u8] {
        random.one_of(&ODD_NAMES).copied().unwrap_or(b"-")
    }

    /// The nodes of which something holds.
    pub(crate) fn all(&self, holds: impl Fn(&Node) -> bool) -> Vec<usize> {
        (0..self.nodes.len()).filter(|index| holds(&self.nodes[*index])).collect()
    }
}

/// The path of a name in a directory.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    [directory, b"/", name].concat()
}

/// The directory that holds an absolute path.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..slash.max(1)]
}
