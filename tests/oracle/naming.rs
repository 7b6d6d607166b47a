//! How an operation names its files: absolute, from the current directory, from a descriptor, by
//! links of /proc, by ways about, too long, or not at all.

use std::ops::Range;

use nix::libc;

use crate::ground::Part;
use crate::scene::{Kind, Scene, join};
use crate::script::Argument;
use crate::support::random::Random;
use crate::support::relative::relative;

/// Where an operation is made, and what is open then.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The node that is the current directory; none where that is gone.
    pub(crate) current: Option<usize>,
    pub(crate) open: Vec<Open>,
}

/// A node that is open.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) number: i32,
    pub(crate) flags: i32,
    pub(crate) node: usize,
}

/// A name as a call takes it.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The descriptor from which a relative path begins.
    pub(crate) directory: i64,
    pub(crate) path: Argument,
}

/// What is to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Mostly something that exists.
    Existing,
    /// That, and mostly no directory.
    File,
    /// That, and mostly a directory.
    Directory,
    /// Mostly something that does not.
    New,
}

const PATH_MAX: usize = 4096;

/// Draws names for one operation.
pub(crate) struct Namer<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) surroundings: &'a Surroundings,
}

impl Namer<'_> {
    /// A name for a call that takes a directory's descriptor, or for one that does not.
    pub(crate) fn name(&self, random: &mut Random, wish: Wish, takes_directory: bool) -> Named {
        if random.percent(3) {
            return Named { directory: libc::AT_FDCWD.into(), path: Self::nothing(random) };
        }
        let target = self.target(random, wish);
        let (directory, mut path) = self.way(random, &target, takes_directory);
        if random.percent(25) {
            path = self.detour(random, path);
        }
        if random.percent(3) {
            path = Self::stretch(random, path);
        }
        let path = match random.below(100) {
            0..15 => Argument::AtEdge(path),
            15..16 => Argument::Unterminated(path),
            _ => Argument::Text(path),
        };
        Named { directory, path }
    }

    /// No path at all.
    fn nothing(random: &mut Random) -> Argument {
        match random.below(4) {
            0 => Argument::Number(0),
            1 => Argument::Number(1),
            2 => Argument::Number(-4096),
            _ => Argument::Text(Vec::new()),
        }
    }

    /// The path of what is meant, which often exists.
    fn target(&self, random: &mut Random, wish: Wish) -> Vec<u8> {
        let nodes = &self.scene.nodes;
        let part = match random.below(100) {
            0..60 => Part::Host,
            60..85 => Part::Work,
            _ => Part::Second,
        };
        let picky = random.percent(85);
        let links = random.percent(30);
        let of_part = self.scene.all(|node| {
            let is_directory = node.kind == Kind::Directory;
            let fits = match wish {
                Wish::File => !is_directory,
                Wish::Directory => is_directory,
                Wish::Existing | Wish::New => true,
            };
            node.part == part && (fits || !picky)
        });
        let holders = self.scene.all(|node| {
            let is_link = matches!(node.kind, Kind::Link(_));
            node.part == part && (node.kind == Kind::Directory || (is_link && links))
        });
        let existing = random.percent(if wish == Wish::New { 10 } else { 88 });
        match (existing, random.one_of(&of_part), random.one_of(&holders)) {
            (true, Some(node), _) => nodes[*node].path.clone(),
            (_, _, Some(holder)) => join(&nodes[*holder].path, Scene::new_name(random)),
            _ => nodes[0].path.clone(),
        }
    }

    /// The descriptor from which the path begins, and the path.
    fn way(&self, random: &mut Random, target: &[u8], takes_directory: bool) -> (i64, Vec<u8>) {
        let here = libc::AT_FDCWD.into();
        let current = self.surroundings.current.map(|node| &self.scene.nodes[node].path);
        let from_current = || match current {
            Some(current) => relative(current, target),
            None => self.scene.nodes[0].path.clone(),
        };
        let open = random.one_of(&self.surroundings.open);
        let from_open = |open: &Open| relative(&self.scene.nodes[open.node].path, target);
        let slash = |prefix: &str, rest: Vec<u8>| join(prefix.as_bytes(), &rest);
        match (random.below(100), open) {
            (0..30, _) => (here, target.to_vec()),
            (30..55, _) => (here, from_current()),
            (55..75, Some(open)) if takes_directory => (open.number.into(), from_open(open)),
            (75..77, _) if takes_directory => {
                (if random.percent(50) { -1 } else { 99 }, from_current())
            }
            (77..82, _) => (here, slash("/proc/self/cwd", from_current())),
            (82..84, _) => (here, slash("/proc/thread-self/cwd", from_current())),
            (84..86, _) => (here, [b"/proc/self/root", target].concat()),
            (86..89, Some(open)) => {
                (here, slash(&format!("/proc/self/fd/{}", open.number), from_open(open)))
            }
            (89..91, Some(open)) => {
                (here, slash(&format!("/dev/fd/{}", open.number), from_open(open)))
            }
            (91..94, Some(open)) => (here, format!("/proc/self/fd/{}", open.number).into()),
            (94..96, Some(open)) => (here, format!("/proc/{{pid}}/fd/{}", open.number).into()),
            (96..97, _) => (here, b"/proc/self/cwd".to_vec()),
            _ => (here, target.to_vec()),
        }
    }

    /// The same by a way that takes longer.
    fn detour(&self, random: &mut Random, path: Vec<u8>) -> Vec<u8> {
        let mut names: Vec<Vec<u8>> =
            path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        let at = random.below(names.len());
        match random.below(4) {
            0 if at > 0 => names.insert(at, Vec::new()),
            1 if at > 0 || names[0] != b"" => names.insert(at, b".".to_vec()),
            2 if !names[at].is_empty() && names[at] != b".." && names[at] != b"." => {
                // Only through a directory that is one; else there is no way.
                names.splice(at..at, [names[at].clone(), b"..".to_vec()]);
            }
            _ => names.push(Vec::new()),
        }
        names.join(&b'/')
    }

    /// As long as a path can be, or longer.
    fn stretch(random: &mut Random, path: Vec<u8>) -> Vec<u8> {
        let long = match random.below(4) {
            0 => return join(&path, &[b'n'; 256]),
            1 => PATH_MAX - 1,
            2 => PATH_MAX,
            _ => PATH_MAX + 904,
        };
        let missing = long.saturating_sub(path.len());
        let dots = b"./".repeat(missing / 2);
        let slash: &[u8] = if missing % 2 == 1 { b"/" } else { b"" };
        let at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (above, last) = path.split_at(at);
        // A slash more where one is; a relative name that stands alone takes "./" only.
        if above.is_empty() { [&dots, last].concat() } else { [above, slash, &dots, last].concat() }
    }

    /// A number that means a descriptor, an open one most often.
    pub(crate) fn descriptor(&self, random: &mut Random) -> i64 {
        match (random.one_of(&self.surroundings.open), random.below(100)) {
            (Some(open), 0..96) => open.number.into(),
            (_, 92..98) => -1,
            _ => 99,
        }
    }
}

/// Open files for an operation. Number 0 is in place of the standard input.
pub(crate) fn open_files(random: &mut Random, scene: &Scene) -> Vec<Open> {
    let numbers: Range<usize> = 0..random.below(3);
    let mut open = Vec::new();
    for index in numbers {
        let candidates = scene.all(|node| match index {
            0 => node.kind == Kind::Directory,
            _ => matches!(node.kind, Kind::Directory | Kind::File | Kind::HardLink(_) | Kind::Fifo),
        });
        let Some(node) = random.one_of(&candidates) else { continue };
        let number = match (index, random.below(100)) {
            (0, _) => 10,
            (_, 0..40) => 0,
            _ => 11,
        };
        let flags = match random.below(100) {
            0..60 => libc::O_RDONLY | libc::O_NONBLOCK,
            60..90 => libc::O_PATH,
            _ => libc::O_PATH | libc::O_NOFOLLOW,
        };
        open.push(Open { number, flags, node: *node });
    }
    open
}
