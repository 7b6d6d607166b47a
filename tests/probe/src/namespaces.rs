//! Making and entering namespaces: the way to new capabilities, and to the mounts of others.

use libc::c_long;

use crate::args::{flags, number, path};
use crate::attempt::{Attempt, Outcome, Trail};
use crate::sys::{Arg, CWD, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("clone", clone),
    ("clone3", clone3),
    ("setns", setns),
    ("setns-pidfd", setns_pidfd),
    ("unshare", unshare),
];

const NAMESPACES: &[(&str, i64)] = &[
    ("NEWCGROUP", libc::CLONE_NEWCGROUP as i64),
    ("NEWIPC", libc::CLONE_NEWIPC as i64),
    ("NEWNET", libc::CLONE_NEWNET as i64),
    ("NEWNS", libc::CLONE_NEWNS as i64),
    ("NEWPID", libc::CLONE_NEWPID as i64),
    ("NEWTIME", 0x80),
    ("NEWUSER", libc::CLONE_NEWUSER as i64),
    ("NEWUTS", libc::CLONE_NEWUTS as i64),
];

const SIGCHLD: i64 = libc::SIGCHLD as i64;

/// `unshare FLAGS`
fn unshare(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let flags = flags(arguments, 0, NAMESPACES)?;
    trail.step("unshare", call(libc::SYS_unshare, vec![Arg::Int(flags)]))?;
    Ok(())
}

/// Makes a child by a raw call; a child that comes into being has proved the point and ends.
fn child(
    trail: &mut Trail,
    name: &'static str,
    number: c_long,
    arguments: Vec<Arg<'_>>,
) -> Outcome {
    let made = call(number, arguments);
    if made == Ok(0) {
        std::process::exit(0);
    }
    trail.step(name, made)?;
    Ok(())
}

/// `clone FLAGS`
fn clone(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let flags = flags(arguments, 0, NAMESPACES)?;
    child(trail, "clone", libc::SYS_clone, vec![Arg::Int(flags | SIGCHLD), NONE, NONE, NONE, NONE])
}

/// `clone3 FLAGS`
fn clone3(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let flags = flags(arguments, 0, NAMESPACES)?.cast_unsigned();
    // struct clone_args, version 0: flags, pidfd, child_tid, parent_tid, exit_signal, stack,
    // stack_size, tls.
    let how = words(&[flags, 0, 0, 0, SIGCHLD.cast_unsigned(), 0, 0, 0]);
    child(trail, "clone3", libc::SYS_clone3, vec![Arg::In(&how), Arg::Int(64)])
}

/// `setns PATH`
fn setns(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let opened = call(libc::SYS_openat, vec![CWD, Arg::Path(&path), NONE]);
    let descriptor = trail.step("openat", opened)?;
    trail.step("setns", call(libc::SYS_setns, vec![Arg::Int(descriptor), NONE]))?;
    Ok(())
}

/// `setns-pidfd PID FLAGS`
fn setns_pidfd(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (pid, flags) = (number(arguments, 0)?, flags(arguments, 1, NAMESPACES)?);
    let opened = call(libc::SYS_pidfd_open, vec![Arg::Int(pid), NONE]);
    let descriptor = trail.step("pidfd_open", opened)?;
    let arguments = vec![Arg::Int(descriptor), Arg::Int(flags)];
    trail.step("setns", call(libc::SYS_setns, arguments))?;
    Ok(())
}
