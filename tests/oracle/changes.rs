//! Random changes of metadata: modes, owners, times and extended attributes.

use nix::libc;

use crate::calls::{Caller, OLD, here, number, text, words};
use crate::naming::{Named, Wish};
use crate::scene::ATTRIBUTE;
use crate::script::{Argument, Call, NameOf};
use crate::support::random::Random;

const NOFOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;
const ITSELF: NameOf = NameOf { directory: Some(0), path: None, follow: true };

impl Caller<'_> {
    /// A call on a descriptor.
    fn descriptor(
        &self,
        random: &mut Random,
        [operation, name]: [&'static str; 2],
        rest: Vec<Argument>,
    ) -> Call {
        let mut arguments = vec![number(self.namer.descriptor(random))];
        arguments.extend(rest);
        Call { operation, name, arguments, names: vec![ITSELF], repeatable: false }
    }

    /// A call with a path alone, of which one form follows links.
    fn path(
        &self,
        random: &mut Random,
        operation: &'static str,
        [following, not]: [&'static str; 2],
        rest: Vec<Argument>,
    ) -> Call {
        let follow = random.percent(60);
        let Named { path, .. } = self.namer.name(random, Wish::Existing, false);
        let mut arguments = vec![path];
        arguments.extend(rest);
        let name = if follow { following } else { not };
        let names = vec![here(0, follow || following == not)];
        Call { operation, name, arguments, names, repeatable: false }
    }

    /// A call with a descriptor, a path, and flags for both, which come where `place` says.
    fn flagged(
        &self,
        random: &mut Random,
        [operation, name]: [&'static str; 2],
        mut rest: Vec<Argument>,
        place: usize,
    ) -> Call {
        let flags = match random.below(100) {
            0..40 => 0,
            40..65 => NOFOLLOW,
            65..95 => libc::AT_EMPTY_PATH,
            _ => 1,
        };
        rest.insert(place, number(flags));
        let follow = flags & NOFOLLOW == 0;
        let call = self.named(random, Wish::Existing, [operation, "", name], follow, rest);
        self.perhaps_without_path(random, call, flags)
    }

    pub(crate) fn change_mode(&self, random: &mut Random) -> Call {
        let mode = vec![number(Self::mode(random))];
        match random.below(100) {
            0..25 => self.descriptor(random, ["chmod", "fchmod"], mode),
            25..50 => self.flagged(random, ["chmod", "fchmodat2"], mode, 1),
            _ => {
                let calls = ["chmod", "chmod", "fchmodat"];
                self.named(random, Wish::Existing, calls, true, mode)
            }
        }
    }

    pub(crate) fn change_owner(&self, random: &mut Random) -> Call {
        let mut id = || match random.percent(60) {
            true => number(random.one_of(&self.ids).copied().unwrap_or(0)),
            false => number(-1),
        };
        let ids = vec![id(), id()];
        match random.below(100) {
            0..25 => self.descriptor(random, ["chown", "fchown"], ids),
            25..60 if OLD => self.path(random, "chown", ["chown", "lchown"], ids),
            _ => self.flagged(random, ["chown", "fchownat"], ids, 2),
        }
    }

    /// Access and modification time, with nanoseconds or microseconds.
    fn times(random: &mut Random, in_nanoseconds: bool) -> Argument {
        let (now, omit) = (libc::UTIME_NOW, libc::UTIME_OMIT);
        match random.below(100) {
            0..30 => number(0),
            30..34 => number(1),
            34..38 => words(&[0, 1_000_000_000, 0, 0]),
            38..48 if in_nanoseconds => words(&[0, now, 0, now]),
            48..54 if in_nanoseconds => words(&[0, omit, 0, omit]),
            54..60 if in_nanoseconds => words(&[0, now, 0, omit]),
            60..66 if in_nanoseconds => words(&[5, 5, 0, omit]),
            66..72 if in_nanoseconds => words(&[5, 5, 0, now]),
            _ => words(&[1, 2, 3, 4]),
        }
    }

    pub(crate) fn change_times(&self, random: &mut Random) -> Call {
        let call = match random.below(100) {
            0..10 if OLD => {
                let times = Self::times(random, false);
                self.path(random, "utimes", ["utime", "utime"], vec![times])
            }
            10..20 if OLD => {
                let times = Self::times(random, false);
                self.path(random, "utimes", ["utimes", "utimes"], vec![times])
            }
            20..30 if OLD => {
                let times = Self::times(random, false);
                let calls = ["utimes", "", "futimesat"];
                self.named(random, Wish::Existing, calls, true, vec![times])
            }
            30..55 => {
                let rest = vec![number(0), Self::times(random, true), number(0)];
                self.descriptor(random, ["utimes", "utimensat"], rest)
            }
            _ => {
                let times = Self::times(random, true);
                self.flagged(random, ["utimes", "utimensat"], vec![times], 1)
            }
        };
        Call { repeatable: true, ..call }
    }

    fn attribute(random: &mut Random) -> Argument {
        match random.below(100) {
            0..70 => text(ATTRIBUTE),
            70..85 => text(b"user.other"),
            85..88 => text(b"user."),
            88..90 => text(b"nothing"),
            90..92 => text(b""),
            92..94 => text(&[b"user.", &[b'n'; 256][..]].concat()),
            94..96 => number(1),
            _ => text(b"trusted.a"),
        }
    }

    pub(crate) fn set_attribute(&self, random: &mut Random) -> Call {
        let name = Self::attribute(random);
        let (value, size) = match random.below(20) {
            0 => (number(0), 0),
            1 => (number(1), 4),
            2 => (text(b"value"), 65_537),
            3 => (Argument::Bytes(vec![b'v'; 300]), 300),
            _ => (text(b"value"), 5),
        };
        let flags = match random.below(100) {
            0..60 => 0,
            60..78 => libc::XATTR_CREATE,
            78..96 => libc::XATTR_REPLACE,
            _ => 8,
        };
        let rest = vec![name.clone(), value, number(size), number(flags)];
        match random.below(100) {
            0..25 => self.descriptor(random, ["setxattr", "fsetxattr"], rest),
            25..35 => {
                let flags = flags.cast_unsigned();
                let value = Argument::Attribute { flags, value: b"value".to_vec() };
                let rest = vec![name, value, number(16)];
                self.flagged(random, ["setxattr", "setxattrat"], rest, 0)
            }
            _ => self.path(random, "setxattr", ["setxattr", "lsetxattr"], rest),
        }
    }

    pub(crate) fn remove_attribute(&self, random: &mut Random) -> Call {
        let rest = vec![Self::attribute(random)];
        match random.below(100) {
            0..25 => self.descriptor(random, ["removexattr", "fremovexattr"], rest),
            25..35 => self.flagged(random, ["removexattr", "removexattrat"], rest, 0),
            _ => self.path(random, "removexattr", ["removexattr", "lremovexattr"], rest),
        }
    }
}
