//! Random calls of the kernel that act on files.

use nix::libc;

use crate::naming::{Named, Namer, Wish};
use crate::scene::Kind;
use crate::script::{Argument, CURRENT, Call, NameOf};
use crate::support::random::Random;

/// Whether this architecture has the calls without a directory's descriptor.
pub(crate) const OLD: bool = cfg!(target_arch = "x86_64");
const MODES: [i64; 7] = [0o644, 0o600, 0o444, 0o755, 0o1777, 0o2755, 0o4755];

/// Draws calls for one operation.
pub(crate) struct Caller<'a> {
    pub(crate) namer: Namer<'a>,
    /// Ids that files can be given.
    pub(crate) ids: [u32; 3],
}

/// The first name of a call is that of arguments 0 and 1, or of 0 alone.
pub(crate) fn at(follow: bool) -> NameOf {
    NameOf { directory: Some(0), path: Some(1), follow }
}

pub(crate) fn here(path: usize, follow: bool) -> NameOf {
    NameOf { directory: None, path: Some(path), follow }
}

pub(crate) fn number(value: impl Into<i64>) -> Argument {
    Argument::Number(value.into())
}

pub(crate) fn text(bytes: &[u8]) -> Argument {
    Argument::Text(bytes.to_vec())
}

pub(crate) fn words(fields: &[i64]) -> Argument {
    Argument::Bytes(fields.iter().flat_map(|field| field.to_ne_bytes()).collect())
}

fn directory(named: &Named) -> Argument {
    Argument::Number(named.directory)
}

impl Caller<'_> {
    pub(crate) fn draw(&self, random: &mut Random) -> Call {
        match random.below(100) {
            0..31 => self.open(random),
            31..37 => self.make_directory(random),
            37..43 => self.make_node(random),
            43..48 => self.symlink(random),
            48..55 => self.link(random),
            55..62 => self.remove(random, false),
            62..67 => self.remove(random, true),
            67..79 => self.rename(random),
            79..82 => self.truncate(random),
            82..87 => self.change_mode(random),
            87..91 => self.change_owner(random),
            91..95 => self.change_times(random),
            95..98 => self.set_attribute(random),
            _ => self.remove_attribute(random),
        }
    }

    pub(crate) fn mode(random: &mut Random) -> i64 {
        // The last ones are refused to root.
        let most = if random.percent(10) { MODES.len() } else { 4 };
        random.one_of(&MODES[..most]).copied().unwrap_or(0o644)
    }

    fn open_flags(random: &mut Random) -> i32 {
        let mut flags = match random.below(100) {
            0..25 => libc::O_RDONLY,
            25..65 => libc::O_WRONLY,
            65..98 => libc::O_RDWR,
            _ => libc::O_ACCMODE,
        };
        for (flag, percent) in [
            (libc::O_CREAT, 38),
            (libc::O_EXCL, 12),
            (libc::O_TRUNC, 20),
            (libc::O_NOFOLLOW, 12),
            (libc::O_PATH, 5),
            (libc::O_TMPFILE, 6),
            (libc::O_DIRECTORY, 7),
            (libc::O_APPEND, 10),
            (libc::O_CLOEXEC, 30),
            (libc::O_NOATIME, 4),
            (libc::O_SYNC, 3),
            (libc::O_DIRECT, 2),
            (libc::O_NONBLOCK, 30),
        ] {
            if random.percent(percent) {
                flags |= flag;
            }
        }
        // Only so a fifo never waits for its other end.
        if flags & libc::O_ACCMODE == libc::O_RDWR { flags } else { flags | libc::O_NONBLOCK }
    }

    fn open(&self, random: &mut Random) -> Call {
        let flags = Self::open_flags(random);
        let creates = flags & libc::O_CREAT != 0;
        let follow = flags & libc::O_NOFOLLOW == 0
            && (flags & libc::O_EXCL == 0 || !creates || flags & libc::O_PATH != 0);
        let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let wish = if temporary {
            Wish::Directory
        } else if creates && random.percent(60) {
            Wish::New
        } else {
            Wish::File
        };
        let mode = Self::mode(random);
        let repeatable = !creates && !temporary;
        let call = |name, arguments, place| Call {
            operation: "open",
            name,
            arguments,
            names: vec![place],
            repeatable,
        };
        // creat would wait for the other end of a fifo.
        let can_wait = self.namer.scene.nodes.iter().any(|node| node.kind == Kind::Fifo);
        match random.below(100) {
            0..25 if OLD => {
                let Named { path, .. } = self.namer.name(random, wish, false);
                call("open", vec![path, number(flags), number(mode)], here(0, follow))
            }
            25..35 if OLD && !can_wait => {
                let Named { path, .. } = self.namer.name(random, wish, false);
                Call { repeatable: false, ..call("creat", vec![path, number(mode)], here(0, true)) }
            }
            35..45 => {
                let named = self.namer.name(random, wish, true);
                let flags = if flags & libc::O_PATH != 0 {
                    flags & (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC)
                } else {
                    flags
                };
                let mode = if creates || temporary { mode } else { 0 };
                let how = [flags.into(), mode, Self::resolution(random)];
                let start = directory(&named);
                let size = if random.percent(3) { 8 } else { 24 };
                call("openat2", vec![start, named.path, words(&how), number(size)], at(follow))
            }
            _ => {
                let named = self.namer.name(random, wish, true);
                let start = directory(&named);
                let arguments = vec![start, named.path, number(flags), number(mode)];
                call("openat", arguments, at(follow))
            }
        }
    }

    /// Flags of openat2(2) for looking up.
    fn resolution(random: &mut Random) -> i64 {
        let flags = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20];
        match random.one_of(&flags) {
            Some(flag) if random.percent(15) => *flag,
            _ => 0,
        }
    }

    /// A call with one name and further arguments, in its old form or with a descriptor.
    pub(crate) fn named(
        &self,
        random: &mut Random,
        wish: Wish,
        [operation, old, new]: [&'static str; 3],
        follow: bool,
        rest: Vec<Argument>,
    ) -> Call {
        let is_old = OLD && random.percent(40) && !old.is_empty();
        let named = self.namer.name(random, wish, !is_old);
        let start = directory(&named);
        let (mut arguments, place) = match is_old {
            true => (vec![named.path], here(0, follow)),
            false => (vec![start, named.path], at(follow)),
        };
        arguments.extend(rest);
        let name = if is_old { old } else { new };
        Call { operation, name, arguments, names: vec![place], repeatable: false }
    }

    fn make_directory(&self, random: &mut Random) -> Call {
        let mode = number(Self::mode(random) & 0o1777);
        let calls = ["mkdir", "mkdir", "mkdirat"];
        self.named(random, Wish::New, calls, false, vec![mode])
    }

    fn make_node(&self, random: &mut Random) -> Call {
        let kind = match random.below(100) {
            0..10 => 0,
            10..35 => libc::S_IFREG,
            35..65 => libc::S_IFIFO,
            65..80 => libc::S_IFSOCK,
            80..88 => libc::S_IFCHR,
            88..92 => libc::S_IFBLK,
            92..96 => libc::S_IFDIR,
            _ => libc::S_IFMT,
        };
        let mode = i64::from(kind) | Self::mode(random);
        // /dev/null; that of a block device is nobody's.
        let rest = vec![number(mode), number(0x0103)];
        self.named(random, Wish::New, ["mknod", "mknod", "mknodat"], false, rest)
    }

    fn symlink(&self, random: &mut Random) -> Call {
        let is_old = OLD && random.percent(40);
        let named = self.namer.name(random, Wish::New, !is_old);
        let target = match random.below(20) {
            0 => text(b""),
            1 => number(1),
            2 => text(&[b'n'; 4096]),
            _ => text(b"anything"),
        };
        let start = directory(&named);
        let (name, arguments, place) = match is_old {
            true => ("symlink", vec![target, named.path], here(1, false)),
            false => {
                let place = NameOf { directory: Some(1), path: Some(2), follow: false };
                ("symlinkat", vec![target, start, named.path], place)
            }
        };
        Call { operation: "symlink", name, arguments, names: vec![place], repeatable: false }
    }

    /// A call with two names, and flags where it takes any.
    fn two_names(
        &self,
        random: &mut Random,
        wish: Wish,
        [operation, old, new]: [&'static str; 3],
        flags: Option<i64>,
        follow: bool,
    ) -> Call {
        let is_old = OLD && flags.is_none() && random.percent(60);
        let old_wish = if operation == "link" { Wish::File } else { Wish::Existing };
        let first = self.namer.name(random, old_wish, !is_old);
        let second = self.namer.name(random, wish, !is_old);
        let (start, to) = (directory(&first), directory(&second));
        let (name, arguments, names) = if is_old {
            (old, vec![first.path, second.path], vec![here(0, follow), here(1, false)])
        } else {
            let mut arguments = vec![start, first.path, to, second.path];
            arguments.extend(flags.map(Argument::Number));
            let second = NameOf { directory: Some(2), path: Some(3), follow: false };
            (new, arguments, vec![at(follow), second])
        };
        Call { operation, name, arguments, names, repeatable: false }
    }

    fn link(&self, random: &mut Random) -> Call {
        if random.percent(40) && OLD {
            return self.two_names(random, Wish::New, ["link", "link", "link"], None, false);
        }
        let flags = match random.below(100) {
            0..50 => 0,
            50..85 => libc::AT_SYMLINK_FOLLOW,
            85..95 => libc::AT_EMPTY_PATH,
            _ => 1,
        };
        let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
        let calls = ["link", "link", "linkat"];
        let call = self.two_names(random, Wish::New, calls, Some(flags.into()), follow);
        self.perhaps_without_path(random, call, flags)
    }

    fn remove(&self, random: &mut Random, directory: bool) -> Call {
        let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
        let old = if directory { "rmdir" } else { "unlink" };
        let wish = if directory { Wish::Directory } else { Wish::File };
        // A second argument of the old ones is nothing to them.
        let flags = if random.percent(2) { flags | 0x10_0000 } else { flags };
        self.named(random, wish, [old, old, "unlinkat"], false, vec![number(flags)])
    }

    fn rename(&self, random: &mut Random) -> Call {
        let wish = if random.percent(50) { Wish::New } else { Wish::Existing };
        let flags = match random.below(100) {
            0..50 => {
                let calls = ["rename", "rename", "renameat"];
                return self.two_names(random, wish, calls, None, false);
            }
            50..60 => 0,
            60..76 => libc::RENAME_NOREPLACE,
            76..94 => libc::RENAME_EXCHANGE,
            94..96 => libc::RENAME_EXCHANGE | libc::RENAME_NOREPLACE,
            96..98 => libc::RENAME_WHITEOUT,
            _ => 0x100,
        };
        let wish = if flags & libc::RENAME_EXCHANGE != 0 { Wish::Existing } else { wish };
        let calls = ["rename", "rename", "renameat2"];
        self.two_names(random, wish, calls, Some(flags.into()), false)
    }

    fn truncate(&self, random: &mut Random) -> Call {
        let Named { path, .. } = self.namer.name(random, Wish::File, false);
        let length = if random.percent(5) { -1 } else { 0 };
        Call {
            operation: "truncate",
            name: "truncate",
            arguments: vec![path, number(length)],
            names: vec![here(0, true)],
            repeatable: true,
        }
    }

    /// With `AT_EMPTY_PATH`, the path is mostly empty.
    pub(crate) fn perhaps_without_path(
        &self,
        random: &mut Random,
        mut call: Call,
        flags: i32,
    ) -> Call {
        if flags & libc::AT_EMPTY_PATH != 0 && random.percent(80) {
            call.arguments[0] = match random.percent(20) {
                true => CURRENT,
                false => number(self.namer.descriptor(random)),
            };
            call.arguments[1] = text(b"");
        }
        call
    }
}
