//! What comes in through descriptors: 0–2, which every command has, and those that nobody meant to
//! pass.

use std::ffi::CString;

use crate::args::{flags, number, path};
use crate::attempt::{Attempt, Outcome, Trail};
use crate::files::{OPEN_FLAGS, write};
use crate::sys::{Arg, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("fchmod", fchmod),
    ("fsetxattr", fsetxattr),
    ("ftruncate", ftruncate),
    ("futimens", futimens),
    ("openat-fd", openat_fd),
    ("write-fd", write_fd),
];

/// The name through which /proc hands out a descriptor again.
pub(crate) fn magic_link(descriptor: i64) -> CString {
    CString::new(format!("/proc/self/fd/{descriptor}")).unwrap_or_default()
}

/// `write-fd FD`
fn write_fd(trail: &mut Trail, arguments: &[String]) -> Outcome {
    trail.step("write", write(number(arguments, 0)?))?;
    Ok(())
}

/// `ftruncate FD`
fn ftruncate(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let arguments = vec![Arg::Int(number(arguments, 0)?), NONE];
    trail.step("ftruncate", call(libc::SYS_ftruncate, arguments))?;
    Ok(())
}

/// `openat-fd FD NAME FLAGS`: below a directory that was open before the sandbox began.
fn openat_fd(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (dir, name) = (number(arguments, 0)?, path(arguments, 1)?);
    let flags = flags(arguments, 2, OPEN_FLAGS)?;
    let arguments = vec![Arg::Int(dir), Arg::Path(&name), Arg::Int(flags), Arg::Int(0o644)];
    let descriptor = trail.step("openat", call(libc::SYS_openat, arguments))?;
    trail.step("write", write(descriptor))?;
    Ok(())
}

/// `fchmod FD MODE`
fn fchmod(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let arguments = vec![Arg::Int(number(arguments, 0)?), Arg::Int(number(arguments, 1)?)];
    trail.step("fchmod", call(libc::SYS_fchmod, arguments))?;
    Ok(())
}

/// `futimens FD`: one second after the epoch.
fn futimens(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let times = words(&[1, 0, 1, 0]);
    let arguments = vec![Arg::Int(number(arguments, 0)?), NONE, Arg::In(&times), NONE];
    trail.step("utimensat", call(libc::SYS_utimensat, arguments))?;
    Ok(())
}

/// `fsetxattr FD NAME`
fn fsetxattr(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (descriptor, name) = (number(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![Arg::Int(descriptor), Arg::Path(&name), Arg::In(b"1"), Arg::Int(1), NONE];
    trail.step("fsetxattr", call(libc::SYS_fsetxattr, arguments))?;
    Ok(())
}
