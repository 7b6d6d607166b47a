//! The command line, taken as C hands it over: the command's words go to exec as they came.

use std::ffi::{CStr, c_char, c_int};

use crate::sys;

/// The instructions of `filter` around the comparisons.
pub(crate) const SHORTEST_FILTER: usize = 6;
/// BPF_MAXINSNS.
const LONGEST_FILTER: usize = 4096;

const USAGE: &str = "usage: floor [--no-net] [--filter-length N] [--rules N] -- CMD [ARG…]";

pub(crate) struct Options {
    /// The namespaces to unshare.
    pub(crate) namespaces: c_int,
    /// Instructions of the seccomp filter.
    pub(crate) filter_length: usize,
    /// Path rules of the Landlock ruleset.
    pub(crate) rules: usize,
    /// The command's words and the null pointer that ends them.
    pub(crate) command: &'static [*const c_char],
}

impl Options {
    /// Whether the sandbox has a network of its own rather than the caller's.
    pub(crate) fn has_network(&self) -> bool {
        self.namespaces & libc::CLONE_NEWNET != 0
    }
}

pub(crate) fn parse(arguments: &'static [*const c_char]) -> Options {
    let mut options = Options {
        namespaces: libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWNET,
        filter_length: 360,
        rules: 12,
        command: &[],
    };
    let mut at = 1;
    loop {
        match word(arguments, at) {
            Some(b"--no-net") => {
                options.namespaces &= !libc::CLONE_NEWNET;
                at += 1;
            }
            Some(b"--filter-length") => {
                options.filter_length = number(arguments, at + 1);
                at += 2;
            }
            Some(b"--rules") => {
                options.rules = number(arguments, at + 1);
                at += 2;
            }
            Some(b"--") if word(arguments, at + 1).is_some() => {
                options.command = arguments.get(at + 1..).unwrap_or_default();
                break;
            }
            _ => sys::refuse(USAGE),
        }
    }
    if !(SHORTEST_FILTER..=LONGEST_FILTER).contains(&options.filter_length) {
        sys::refuse("--filter-length: 6 to 4096");
    }
    options
}

fn word(arguments: &'static [*const c_char], at: usize) -> Option<&'static [u8]> {
    let pointer = *arguments.get(at)?;
    (!pointer.is_null()).then(|| {
        // SAFETY: the kernel placed a NUL-terminated string behind every pointer of argv but the
        // null that ends it, and nothing in this program writes to those strings.
        unsafe { CStr::from_ptr(pointer) }.to_bytes()
    })
}

fn number(arguments: &'static [*const c_char], at: usize) -> usize {
    word(arguments, at)
        .and_then(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .unwrap_or_else(|| sys::refuse(USAGE))
}
