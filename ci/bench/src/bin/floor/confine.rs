//! What the command gives up on its way to exec.

use std::ffi::CStr;

use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, sock_filter};

use crate::args::{Options, SHORTEST_FILTER};
use crate::sys::{self, PathRule, Ruleset};

pub(crate) fn and_execute(options: &Options) -> ! {
    sys::set_no_new_privileges();
    sys::drop_bounding_set();
    sys::drop_capabilities();
    restrict_writes(options);
    sys::install_filter(&filter(options.filter_length));
    sys::close_from(3);
    sys::execute(options.command)
}

/// LANDLOCK_ACCESS_FS_*, the rights to change something: those that a file can have, and those of a
/// directory.
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_TO_MAKE_SYM: u64 = 0b1_1111_1111 << 4;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1 << 0;
const SCOPE_SIGNAL: u64 = 1 << 1;

/// Where the command may write, and whether that is a directory.
const WRITABLE: [(&CStr, bool); 11] = [
    (c".", true),
    (c"/tmp", true),
    (c"/dev/shm", true),
    (c"/dev/pts", true),
    (c"/dev/ptmx", false),
    (c"/dev/null", false),
    (c"/dev/zero", false),
    (c"/dev/full", false),
    (c"/dev/random", false),
    (c"/dev/urandom", false),
    (c"/dev/tty", false),
];

fn restrict_writes(options: &Options) {
    let abi = sys::landlock_abi();
    let mut of_files = WRITE_FILE;
    let mut of_directories = WRITE_FILE | REMOVE_TO_MAKE_SYM;
    for (since, right, files_have_it) in
        [(2, REFER, false), (3, TRUNCATE, true), (5, IOCTL_DEV, true)]
    {
        if abi >= since {
            of_directories |= right;
            of_files |= if files_have_it { right } else { 0 };
        }
    }
    // Abstract sockets belong to a network namespace: with one of its own the command reaches
    // nobody else's.
    let abstract_sockets = if options.has_network() { 0 } else { SCOPE_ABSTRACT_UNIX_SOCKET };
    let ruleset = sys::create_ruleset(&Ruleset {
        handled_access_fs: of_directories,
        handled_access_net: 0,
        scoped: if abi >= 6 { SCOPE_SIGNAL | abstract_sockets } else { 0 },
    });
    // Past the end of the list it starts again: an equal rule costs as much as a new one, near
    // enough.
    for &(path, is_directory) in WRITABLE.iter().cycle().take(options.rules) {
        let parent_fd = sys::open_path(path);
        let allowed_access = if is_directory { of_directories } else { of_files };
        sys::add_rule(ruleset, &PathRule { allowed_access, parent_fd });
        sys::close(parent_fd);
    }
    sys::restrict_self(ruleset);
    sys::close(ruleset);
}

/// BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K and BPF_RET | BPF_K.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Offsets in seccomp_data.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xC000_00B7;

/// Far above every system call, so that no comparison ever matches.
const FIRST_FREE_NUMBER: u32 = 0x1000_0000;

/// A filter of `length` instructions, of which an allowed call walks all but the two that refuse.
/// The kernel does so for each system call number once, when it takes the filter, and keeps the
/// answers: that is what a filter costs. The architecture comes first, as in any real filter, or
/// the kernel would walk it all for the other one as well.
fn filter(length: usize) -> Vec<sock_filter> {
    let statement = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let jump_if_equal = |k, jt| sock_filter { code: JUMP_IF_EQUAL, jt, jf: 0, k };
    let mut program = Vec::with_capacity(length);
    program.extend([
        statement(LOAD, ARCHITECTURE),
        jump_if_equal(AUDIT_ARCH, 1),
        statement(RETURN, SECCOMP_RET_ERRNO),
        statement(LOAD, NUMBER),
    ]);
    // A match would lead towards the last instruction, as far as a jump reaches.
    for (after, k) in (0..length - SHORTEST_FILTER).rev().zip(FIRST_FREE_NUMBER..) {
        program.push(jump_if_equal(k, u8::try_from(after + 1).unwrap_or(u8::MAX)));
    }
    program.extend([statement(RETURN, SECCOMP_RET_ALLOW), statement(RETURN, SECCOMP_RET_ERRNO)]);
    program
}
