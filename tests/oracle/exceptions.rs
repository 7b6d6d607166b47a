//! Where the facts list something else than what failed inside and succeeds outside, each for a
//! reason.

use std::collections::BTreeMap;
use std::fmt;

use nix::libc;

use crate::draw::Drawn;
use crate::scene::{Kind, Node};
use crate::script::{Argument, Call};

/// What becomes of an operation that fails inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// It is not, although it succeeds outside.
    Unlisted,
    /// Nobody can say.
    Open,
}

/// An operation that fails inside, once.
pub(crate) struct Failure<'a> {
    pub(crate) drawn: &'a Drawn,
    pub(crate) inside: &'a str,
    /// `ok`, or the errno.
    pub(crate) outside: &'a str,
    /// What its names lead to, as far as that is in the trees.
    pub(crate) nodes: Vec<Option<&'a Node>>,
}

/// Why, what, and when.
type Exception = (&'static str, Listing, fn(&Failure<'_>) -> bool);

const EXCEPTIONS: [Exception; 10] = [
    (
        "openat2 is refused to root so that programs use openat, which is judged",
        Listing::Unlisted,
        |failure| failure.is("openat2", "ENOSYS"),
    ),
    (
        "of a refused call only what is there and whose it is are looked at",
        Listing::Open,
        |failure| failure.fails() && failure.inside == "EPERM" && is_refused(failure.drawn),
    ),
    ("openat2 with flags for resolving is not judged", Listing::Unlisted, |failure| {
        failure.resolves()
    }),
    (
        "reading is not watched, so neither is that of a device, which the mount refuses",
        Listing::Unlisted,
        |failure| !failure.fails() && failure.reads() && failure.names(Kind::Device),
    ),
    ("whether anybody reads from a fifo cannot be asked", Listing::Open, |failure| {
        [failure.inside, failure.outside] == ["EACCES", "ENXIO"] && failure.names(Kind::Fifo)
    }),
    ("attributes of administrators are not judged", Listing::Unlisted, |failure| {
        !failure.fails() && failure.says(b"trusted.")
    }),
    (
        "no layer refuses device nodes in a writable root, but the lack of a capability",
        Listing::Unlisted,
        |failure| {
            let is_mknod = failure.call().operation == "mknod" && failure.inside == "EPERM";
            is_mknod && !failure.fails() && !is_refused(failure.drawn)
        },
    ),
    (
        "whether a directory that may not be read is empty is not known",
        Listing::Unlisted,
        |failure| {
            let user = failure.drawn.scene.user;
            let closed = |node: &Node| node.kind == Kind::Directory && !node.is_readable(user);
            !failure.fails() && failure.removed().is_some_and(closed)
        },
    ),
    (
        "whether O_NOATIME is user 65534's to give cannot be told in a user namespace",
        Listing::Open,
        |failure| {
            failure.drawn.scene.user == overflow_user()
                && open_flags(failure.call()).is_some_and(|flags| flags & libc::O_NOATIME != 0)
        },
    ),
    (
        "in a user namespace, user 65534 cannot tell others' files from its own",
        Listing::Open,
        |failure| {
            let user = failure.drawn.scene.user;
            user == overflow_user()
                && matches!(failure.outside, "EPERM" | "EACCES")
                && failure.drawn.scene.nodes.iter().any(|node| node.owner.0 != user)
        },
    ),
];

impl Failure<'_> {
    fn call(&self) -> &Call {
        &self.drawn.line.call
    }

    fn fails(&self) -> bool {
        self.outside != "ok"
    }

    fn is(&self, call: &str, errno: &str) -> bool {
        self.call().name == call && self.inside == errno
    }

    /// Whether a file is opened to be read, or for neither that nor to be written.
    fn reads(&self) -> bool {
        let writes = [libc::O_WRONLY, libc::O_RDWR];
        open_flags(self.call()).is_some_and(|flags| !writes.contains(&(flags & libc::O_ACCMODE)))
    }

    /// Whether openat2 has flags for resolving, its third word.
    fn resolves(&self) -> bool {
        let how = match (self.call().name, self.call().arguments.get(2)) {
            ("openat2", Some(Argument::Bytes(how))) => how.get(16..).unwrap_or_default(),
            _ => &[],
        };
        how.iter().any(|byte| *byte != 0)
    }

    fn names(&self, kind: Kind) -> bool {
        self.nodes.iter().flatten().any(|node| node.kind == kind)
    }

    fn says(&self, start: &[u8]) -> bool {
        self.call()
            .arguments
            .iter()
            .any(|argument| matches!(argument, Argument::Text(text) if text.starts_with(start)))
    }

    /// The file that goes, by rmdir or a rename over it.
    fn removed(&self) -> Option<&Node> {
        let exchange = integer(self.call(), 4).is_some_and(|flags| flags & 2 != 0);
        match (self.call().operation, &self.nodes[..]) {
            ("rmdir", [Some(node)]) => Some(node),
            ("rename", [old, Some(new)]) if !exchange => {
                old.is_none_or(|old| old.path != new.path).then_some(*new)
            }
            _ => None,
        }
    }
}

impl Node {
    fn is_readable(&self, user: u32) -> bool {
        if user == 0 {
            return true;
        }
        let class = if self.owner.0 == user {
            6
        } else if self.owner.1 == user {
            3
        } else {
            0
        };
        self.mode >> class & 0o4 != 0
    }
}

/// The user that stands for all others in a user namespace.
fn overflow_user() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(65534)
}

fn integer(call: &Call, index: usize) -> Option<i64> {
    match call.arguments.get(index) {
        Some(Argument::Number(number)) => Some(*number),
        _ => None,
    }
}

fn open_flags(call: &Call) -> Option<i32> {
    let index = match (call.name, call.arguments.get(2)) {
        ("open", _) => 1,
        ("openat", _) => 2,
        ("openat2", Some(Argument::Bytes(how))) => {
            return how.first_chunk().map(|flags| i32::from_ne_bytes(*flags));
        }
        _ => return None,
    };
    i32::try_from(integer(call, index)?).ok()
}

/// Whether sandbox-profiles/syscalls.toml refuses the call to root, for its mode.
pub(crate) fn is_refused(drawn: &Drawn) -> bool {
    let call = &drawn.line.call;
    let has = |index, bits: i64| integer(call, index).is_some_and(|mode| mode & bits != 0);
    let makes = || {
        open_flags(call).is_some_and(|flags| {
            flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE & !libc::O_DIRECTORY != 0
        })
    };
    match call.name {
        _ if drawn.scene.user != 0 => false,
        "chmod" | "fchmod" => has(1, 0o4000),
        "fchmodat" | "fchmodat2" => has(2, 0o4000),
        "creat" | "mknod" => has(1, 0o6000),
        "mknodat" => has(2, 0o6000),
        "open" => makes() && has(2, 0o6000),
        "openat" => makes() && has(3, 0o6000),
        _ => false,
    }
}

/// The reason for something else, and what.
pub(crate) fn exception(failure: &Failure<'_>) -> Option<(&'static str, Listing)> {
    let applies = EXCEPTIONS.iter().find(|(_, _, applies)| applies(failure));
    applies.map(|(why, listing, _)| (*why, *listing))
}

/// What there was.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) denials: u64,
    exceptions: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(crate) fn except(&mut self, why: &'static str, count: u64) {
        *self.exceptions.entry(why).or_default() += count;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, denials, exceptions } = self;
        let count: u64 = exceptions.values().sum();
        write!(f, "{operations} operations, {denials} denials, {count} exceptions")?;
        exceptions.iter().try_for_each(|(why, count)| write!(f, "\n  {count}: {why}"))
    }
}
