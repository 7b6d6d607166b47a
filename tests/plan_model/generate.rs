//! Random trees, and random requests that make use of them.

use crate::support::random::Random;
use crate::support::relative::relative;
use crate::walk::Walker;
use crate::world::{Kind, OPEN, Place, World};

/// Few, so that a name taken at random often exists.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Something to be mounted.
#[derive(Clone, Debug)]
pub(crate) enum Mounting {
    /// A new file system, and where.
    New { at: Place },
    /// A second view of a place.
    Bind { source: Place, at: Place, recursively: bool },
}

/// A world, and how it came about: what was there before each mount, and the mount.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) world: World,
    pub(crate) stages: Vec<(World, Mounting)>,
}

/// What is asked of the product.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) writes: bool,
    pub(crate) allow_home: bool,
    pub(crate) workspace: Option<String>,
    pub(crate) writable: Vec<String>,
    pub(crate) hidden: Vec<String>,
    pub(crate) protected: Vec<String>,
    /// Writable, hidden and protected paths of a profile.
    pub(crate) profile: Option<[Vec<String>; 3]>,
    /// The current directory.
    pub(crate) directory: String,
    /// What `~` stands for.
    pub(crate) home: String,
}

/// Makes a world below a path.
pub(crate) fn world(random: &mut Random, base: &str, with_mounts: bool) -> Made {
    let mut world = World::new(base);
    let base = world.base();
    grow(random, &mut world, base, 3);
    let mut stages = Vec::new();
    let mounts = if with_mounts { random.below(6) } else { 0 };
    for _ in 0..mounts {
        let before = world.clone();
        if let Some(mounting) = mount(random, &mut world) {
            stages.push((before, mounting));
        }
    }
    Made { world, stages }
}

/// Fills a directory.
fn grow(random: &mut Random, world: &mut World, directory: Place, depth: usize) {
    let mut links = Vec::new();
    for name in NAMES {
        if random.percent(35) {
            continue;
        }
        let kind = match random.below(100) {
            0..50 if depth > 0 => OPEN,
            0..75 => Kind::File,
            _ => Kind::Link(String::new()),
        };
        let node = world.add(directory.node, name, kind.clone());
        match kind {
            Kind::Directory { .. } => {
                grow(random, world, Place { node, ..directory }, depth - 1);
                if random.percent(4) {
                    world.close(node);
                }
            }
            Kind::Link(_) => links.push(node),
            Kind::File => {}
        }
    }
    for link in links {
        let target = path(random, world, directory);
        world.retarget(link, target.trim_end_matches('/').to_owned());
    }
}

fn mount(random: &mut Random, world: &mut World) -> Option<Mounting> {
    let places = world.places();
    let mounts: Vec<_> = places.iter().filter(|place| world.is_mount(**place)).collect();
    let at = match random.one_of(&mounts) {
        // Above another, which it may cover.
        Some(mount) if random.percent(30) => world.up(world.up(**mount)),
        _ => *random.one_of(&places)?,
    };
    let is_directory = |place: Place| matches!(world.kind(place.node), Kind::Directory { .. });
    if !places[1..].contains(&at) || matches!(world.kind(at.node), Kind::Link(_)) {
        return None;
    }
    if is_directory(at) && random.percent(30) {
        let root = world.mount_new(at);
        let place = *world.places().iter().find(|place| place.node == root)?;
        grow(random, world, place, 1);
        return Some(Mounting::New { at });
    }
    let source = *random.one_of(&places)?;
    if matches!(world.kind(source.node), Kind::Link(_)) || is_directory(source) != is_directory(at)
    {
        return None;
    }
    let recursively = random.percent(50);
    world.bind(source, at, recursively);
    Some(Mounting::Bind { source, at, recursively })
}

/// A path, from a directory: to something that exists, or to anything.
fn path(random: &mut Random, world: &World, from: Place) -> String {
    let mut path = match (random.below(100), random.one_of(&world.places())) {
        (0..35, Some(place)) => world.path(*place),
        (35..65, Some(place)) => way(world, from, *place),
        _ => {
            let names: Vec<_> = (0..=random.below(4))
                .map(|_| match random.below(100) {
                    0..20 => "..",
                    20..25 => ".",
                    _ => random.one_of(&NAMES).copied().unwrap_or("a"),
                })
                .collect();
            names.join("/")
        }
    };
    let mut names: Vec<_> = path.split('/').map(str::to_owned).collect();
    let at = random.below(names.len());
    if random.percent(15) && NAMES.contains(&&*names[at]) {
        let there_and_back = [names[at].clone(), "..".to_owned()];
        names.splice(at..at, there_and_back);
    }
    if random.percent(10) && at > 0 {
        names.splice(at..at, [String::new(), ".".to_owned()]);
    }
    path = names.join("/");
    if random.percent(5) {
        path.push('/');
    }
    path
}

/// The way from one place to another.
fn way(world: &World, from: Place, to: Place) -> String {
    let way = relative(world.path(from).as_bytes(), world.path(to).as_bytes());
    String::from_utf8_lossy(&way).into_owned()
}

/// Makes a request. `outside` is a directory that the tree does not hold.
pub(crate) fn asked(random: &mut Random, world: &World, walker: Walker, outside: &str) -> Asked {
    let directories: Vec<_> = world
        .places()
        .into_iter()
        .filter(|place| {
            let path = world.path(*place);
            matches!(world.kind(place.node), Kind::Directory { .. })
                && walker.may_search(world, *place)
                && walker.walk(world, &path).end.is_ok()
        })
        .collect();
    let mut directory = || *random.one_of(&directories).unwrap_or(&world.base());
    let (current, workspace, home) = (directory(), directory(), directory());
    let paths = |random: &mut Random, most: usize, from: Place| -> Vec<String> {
        (0..random.below(most + 1)).map(|_| path(random, world, from)).collect()
    };
    // Most are what they must be: a request that is refused tests little.
    let roots = |random: &mut Random, most: usize, from: Place| -> Vec<String> {
        let mut roots = paths(random, most, from);
        for root in &mut roots {
            if let (Some(place), true) = (random.one_of(&directories), random.percent(75)) {
                *root = way(world, from, *place);
            }
        }
        roots
    };
    let named = match random.below(100) {
        0..25 => None,
        25..90 => Some(world.path(workspace)),
        _ => Some(path(random, world, current)),
    };
    let profile = random.percent(50).then(|| {
        let from = if named.is_none() { current } else { workspace };
        let mut lists = [roots(random, 1, from), paths(random, 2, from), paths(random, 2, from)];
        for path in lists.iter_mut().flatten().filter(|path| !path.starts_with('/')) {
            if random.percent(20) {
                path.insert_str(0, "~/");
            }
        }
        lists
    });
    let writes = random.percent(85);
    Asked {
        // A profile that names writable roots extends the rung that has some.
        writes: writes || profile.as_ref().is_some_and(|[writable, ..]| !writable.is_empty()),
        allow_home: random.percent(20),
        workspace: named,
        writable: roots(random, 2, current),
        hidden: paths(random, 2, current),
        protected: paths(random, 2, current),
        profile,
        directory: world.path(current),
        home: if random.percent(50) { world.path(home) } else { outside.to_owned() },
    }
}
