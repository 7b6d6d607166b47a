//! The floor: what the kernel itself charges for a sandbox like dsh's, with nothing but the calls
//! that build it.
//!
//! `floor [--no-net] [--filter-length N] [--rules N] -- CMD [ARG…]` confines CMD to the current
//! directory, as `dsh-run --mode workspace-write` does, and ends with its exit status. It is a
//! yardstick, not a sandbox to rely on: it has no policy, no facts and no way to do with less. Any
//! failure ends it with status 125.
//!
//! Four processes: the *parent* stays in the caller's namespaces, the *maker* enters the new ones,
//! *init* is pid 1 in them and lays out the mounts, and the *command* gives up its rights and
//! executes CMD.
#![no_main]

mod args;
mod confine;
mod ids;
mod loopback;
mod sys;
mod view;

use std::ffi::{CString, c_char, c_int};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::unix::ffi::OsStringExt as _;

use args::Options;
use view::View;

// std unwinds with libgcc_s, whose loading alone costs a tenth of a millisecond. The static twin of
// it, searched first, leaves libc as the only library, as for a C program.
#[link(name = "gcc_eh", kind = "static", modifiers = "-bundle")]
unsafe extern "C" {}

/// C's own entry: std's would set up a guard page, an alternate stack and SIGPIPE for a program
/// that needs none.
// SAFETY: `no_mangle` is unsafe because the symbol could clash with another; with `no_main` nothing
// else defines `main`, and the signature is the one that the C runtime calls.
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let options = args::parse(sys::argument_pointers(argc, argv));
    let caller = ids::Caller::new();
    let (from_maker, to_parent) = sys::ok(pipe(), "pipe");
    let (from_parent, to_maker) = sys::ok(pipe(), "pipe");
    let maker = sys::fork();
    if maker == 0 {
        drop((from_maker, to_maker));
        make(&options, &caller, from_parent, to_parent);
    }
    // Without these two, a child that dies would never show as the end of the pipe.
    drop((from_parent, to_parent));
    let status = attend(&caller, maker, from_maker, to_maker);
    // The kernel takes the sandbox down in the maker's exit, and that is part of the price.
    sys::wait(maker);
    sys::exit_code(status)
}

/// Parent: writes the maker's id map if only someone outside can, then waits for the command's wait
/// status.
fn attend(
    caller: &ids::Caller,
    maker: libc::pid_t,
    mut from_maker: PipeReader,
    mut to_maker: PipeWriter,
) -> c_int {
    if caller.is_root {
        let maps = ids::identity_maps();
        sys::ok(from_maker.read_exact(&mut [0]), "wait for the namespaces");
        maps.write_for(maker);
        sys::ok(to_maker.write_all(&[0]), "announce the id map");
    }
    let mut status = [0; size_of::<c_int>()];
    sys::ok(from_maker.read_exact(&mut status), "wait for the exit status");
    c_int::from_ne_bytes(status)
}

/// Maker: enters the namespaces and forks init, since a new pid namespace begins with the next
/// child.
fn make(
    options: &Options,
    caller: &ids::Caller,
    mut from_parent: PipeReader,
    mut to_parent: PipeWriter,
) -> ! {
    let cwd = sys::ok(std::env::current_dir(), "current directory").into_os_string().into_vec();
    let workspace = sys::ok(CString::new(cwd), "current directory");
    sys::unshare(options.namespaces);
    if caller.is_root {
        sys::ok(to_parent.write_all(&[0]), "announce the namespaces");
    } else {
        caller.map_itself();
    }
    // Nothing up to the wait needs an id, so it runs while the parent writes the map.
    if options.has_network() {
        loopback::up();
    }
    let view = View::seal();
    if caller.is_root {
        sys::ok(from_parent.read_exact(&mut [0]), "wait for the id map");
    }
    let init = sys::fork();
    if init == 0 {
        view.furnish(&workspace);
        lead(options, to_parent);
    }
    sys::wait(init);
    sys::exit(0)
}

/// Init: forks the command, reaps whatever ends, and ends with the command, which kills all that is
/// left.
fn lead(options: &Options, mut to_parent: PipeWriter) -> ! {
    let command = sys::fork();
    if command == 0 {
        confine::and_execute(options);
    }
    loop {
        let (ended, status) = sys::wait(-1);
        if ended == command {
            sys::ok(to_parent.write_all(&status.to_ne_bytes()), "report the exit status");
            sys::exit(0);
        }
    }
}
