//! Operations, each with a tree of its own, drawn from a number.

use nix::libc;

use crate::calls::{Caller, at, here, number, text};
use crate::ground::Ground;
use crate::naming::{Namer, Surroundings, open_files};
use crate::scene::{Kind, OTHER, Scene};
use crate::script::{CURRENT, Call, Line, NameOf};
use crate::support::random::Random;

/// An operation, and what is there for it.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) number: u64,
    pub(crate) scene: Scene,
    pub(crate) line: Line,
}

/// Names of what every command has, be it the same for all operations or new for each.
const STREAMS: [&[u8]; 9] = [
    b"/dev/stdin",
    b"/proc/self/fd/0",
    b"/dev/fd/0",
    b"/dev/stdout",
    b"/proc/self/fd/1",
    b"/dev/stderr",
    b"/dev/fd/2",
    b"/proc/thread-self/fd/2",
    b"/proc/{pid}/fd/2",
];
const DEVICES: [&[u8]; 4] = [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random"];

/// Draws the operation of this number, for a user.
pub(crate) fn draw(seed: u64, number: u64, ground: &Ground, user: u32, many_owners: bool) -> Drawn {
    let mut random = Random::of_case(seed, number);
    let random = &mut random;
    let scene = Scene::draw(random, ground, number, user, many_owners);
    let directories = scene.all(|node| node.kind == Kind::Directory);
    let current = random.one_of(&directories).copied().filter(|_| !random.percent(1));
    let surroundings = Surroundings { current, open: open_files(random, &scene) };
    let caller = Caller {
        namer: Namer { scene: &scene, surroundings: &surroundings },
        ids: [0, user, OTHER],
    };
    let call = if random.percent(4) { common(random) } else { caller.draw(random) };
    let times = if call.repeatable && random.percent(10) { 2 + random.below(2) } else { 1 };
    let path = |node: usize| scene.nodes[node].path.clone();
    let line = Line {
        current: current.map(path),
        open: surroundings.open.iter().map(|one| (one.number, one.flags, path(one.node))).collect(),
        times,
        call,
    };
    Drawn { number, scene, line }
}

/// A call on what operations share, which changes nothing that another one could notice.
fn common(random: &mut Random) -> Call {
    let stream = random.one_of(&STREAMS).copied().unwrap_or_default();
    let call = |operation, name, arguments, name_of| Call {
        operation,
        name,
        arguments,
        names: vec![name_of],
        repeatable: true,
    };
    let descriptor = i64::try_from(random.below(3)).unwrap_or_default();
    let itself = NameOf { directory: Some(0), path: None, follow: true };
    match random.below(100) {
        0..60 => {
            let path = match random.percent(25) {
                true => random.one_of(&DEVICES).copied().unwrap_or_default(),
                false => stream,
            };
            let mut flags = libc::O_NONBLOCK;
            for (flag, percent) in [
                (libc::O_WRONLY, 50),
                (libc::O_RDWR, 40),
                (libc::O_CREAT, 30),
                (libc::O_TRUNC, 30),
                (libc::O_APPEND, 20),
                (libc::O_NOFOLLOW, 10),
            ] {
                let fits = flags & libc::O_ACCMODE == 0 || flag & libc::O_ACCMODE == 0;
                if fits && random.percent(percent) {
                    flags |= flag;
                }
            }
            let arguments = vec![CURRENT, text(path), number(flags), number(0o644)];
            call("open", "openat", arguments, at(flags & libc::O_NOFOLLOW == 0))
        }
        60..70 => call("truncate", "truncate", vec![text(stream), number(0)], here(0, true)),
        70..80 => {
            let arguments = vec![CURRENT, text(stream), number(0), number(0)];
            call("utimes", "utimensat", arguments, at(true))
        }
        80..85 => call("chmod", "fchmodat", vec![CURRENT, text(stream), number(0o644)], at(true)),
        85..90 => call("chmod", "fchmod", vec![number(descriptor), number(0o644)], itself),
        90..95 => {
            let arguments = vec![number(descriptor), number(0), number(0), number(0)];
            call("utimes", "utimensat", arguments, itself)
        }
        _ => {
            let arguments = vec![number(descriptor), number(-1), number(-1)];
            call("chown", "fchown", arguments, itself)
        }
    }
}
