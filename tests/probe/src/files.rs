//! Opening, creating and truncating files. Whatever can be opened for writing is written to: an
//! attack that works must leave its mark where the suite looks for it.

use libc::c_long;

use crate::args::{flags, number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::numbers::legacy;
use crate::sys::{Arg, CWD, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("creat", creat),
    ("open", open),
    ("openat", openat),
    ("openat2", openat2),
    ("open-by-handle", open_by_handle),
    ("open-only", open_only),
    ("read", read),
    ("rewrite", rewrite),
    ("tmpfile", tmpfile),
    ("truncate", truncate),
];

pub(crate) const OPEN_FLAGS: &[(&str, i64)] = &[
    ("RDONLY", libc::O_RDONLY as i64),
    ("WRONLY", libc::O_WRONLY as i64),
    ("RDWR", libc::O_RDWR as i64),
    ("APPEND", libc::O_APPEND as i64),
    ("CREAT", libc::O_CREAT as i64),
    ("EXCL", libc::O_EXCL as i64),
    ("TRUNC", libc::O_TRUNC as i64),
    ("NONBLOCK", libc::O_NONBLOCK as i64),
    ("DIRECTORY", libc::O_DIRECTORY as i64),
    ("NOFOLLOW", libc::O_NOFOLLOW as i64),
    ("PATH", libc::O_PATH as i64),
];

/// Number of a call that this architecture may lack.
pub(crate) fn old(name: &str) -> Result<c_long, Stop> {
    legacy(name).ok_or_else(|| Stop::Misuse(format!("no {name} on this architecture")))
}

/// The optional mode after the flags.
fn mode(arguments: &[String]) -> Result<i64, Stop> {
    if arguments.len() > 2 { number(arguments, 2) } else { Ok(0) }
}

/// Leaves the attack's mark, if the descriptor takes any.
fn mark(trail: &mut Trail, descriptor: i64, flags: i64) -> Outcome {
    if flags & (i64::from(libc::O_WRONLY | libc::O_RDWR)) != 0 {
        trail.step("write", write(descriptor))?;
    }
    Ok(())
}

/// Writes the attack's mark to a descriptor.
pub(crate) fn write(descriptor: i64) -> Result<i64, nix::errno::Errno> {
    let mark = b"ESCAPED\n";
    call(libc::SYS_write, vec![Arg::Int(descriptor), Arg::In(mark), Arg::Int(8)])
}

/// `openat PATH FLAGS [MODE]`
fn openat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, flags) = (path(arguments, 0)?, flags(arguments, 1, OPEN_FLAGS)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(flags), Arg::Int(mode(arguments)?)];
    let descriptor = trail.step("openat", call(libc::SYS_openat, arguments))?;
    mark(trail, descriptor, flags)
}

/// `open PATH FLAGS [MODE]`: the call that libc no longer uses, but the kernel still has.
fn open(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, flags) = (path(arguments, 0)?, flags(arguments, 1, OPEN_FLAGS)?);
    let arguments = vec![Arg::Path(&path), Arg::Int(flags), Arg::Int(mode(arguments)?)];
    let descriptor = trail.step("open", call(old("open")?, arguments))?;
    mark(trail, descriptor, flags)
}

/// `openat2 PATH FLAGS [MODE]`: flags and mode in memory, where seccomp cannot see them.
fn openat2(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, flags) = (path(arguments, 0)?, flags(arguments, 1, OPEN_FLAGS)?);
    let how = words(&[flags.cast_unsigned(), mode(arguments)?.cast_unsigned(), 0]);
    let arguments = vec![CWD, Arg::Path(&path), Arg::In(&how), Arg::Int(24)];
    let descriptor = trail.step("openat2", call(libc::SYS_openat2, arguments))?;
    mark(trail, descriptor, flags)
}

/// `creat PATH MODE`
fn creat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, mode) = (path(arguments, 0)?, number(arguments, 1)?);
    let made = call(old("creat")?, vec![Arg::Path(&path), Arg::Int(mode)]);
    let descriptor = trail.step("creat", made)?;
    mark(trail, descriptor, i64::from(libc::O_WRONLY))
}

/// `tmpfile DIR NEW MODE`: a file without a name, which gets one when its mode and content are
/// ready.
fn tmpfile(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (dir, new, mode) = (path(arguments, 0)?, path(arguments, 1)?, number(arguments, 2)?);
    let flags = i64::from(libc::O_TMPFILE | libc::O_RDWR);
    let arguments = vec![CWD, Arg::Path(&dir), Arg::Int(flags), Arg::Int(mode)];
    let descriptor = trail.step("openat", call(libc::SYS_openat, arguments))?;
    mark(trail, descriptor, flags)?;
    let name = crate::descriptors::magic_link(descriptor);
    let follow = Arg::Int(i64::from(libc::AT_SYMLINK_FOLLOW));
    let arguments = vec![CWD, Arg::Path(&name), CWD, Arg::Path(&new), follow];
    trail.step("linkat", call(libc::SYS_linkat, arguments))?;
    Ok(())
}

/// `truncate PATH`
fn truncate(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("truncate", call(libc::SYS_truncate, vec![Arg::Path(&path), Arg::Int(1)]))?;
    Ok(())
}

/// `open-only PATH FLAGS`: for files of the kernel, where a mark would be an order.
fn open_only(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, flags) = (path(arguments, 0)?, flags(arguments, 1, OPEN_FLAGS)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(flags)];
    trail.step("openat", call(libc::SYS_openat, arguments))?;
    Ok(())
}

/// `rewrite PATH`: writes the value that a setting of the kernel already has.
fn rewrite(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let value = std::fs::read(text(arguments, 0)?).unwrap_or_default();
    let flags = Arg::Int(i64::from(libc::O_WRONLY));
    let opened = call(libc::SYS_openat, vec![CWD, Arg::Path(&path), flags]);
    let descriptor = Arg::Int(trail.step("openat", opened)?);
    let length = Arg::Int(i64::try_from(value.len()).unwrap_or_default());
    let written = call(libc::SYS_write, vec![descriptor, Arg::In(&value), length]);
    trail.step("write", written)?;
    Ok(())
}

/// `read PATH`: how many bytes a file that should be absent or masked gives away.
fn read(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let flags = Arg::Int(i64::from(libc::O_RDONLY | libc::O_NONBLOCK));
    let opened = call(libc::SYS_openat, vec![CWD, Arg::Path(&path), flags]);
    let descriptor = trail.step("openat", opened)?;
    let mut bytes = [0; 64];
    let got = call(libc::SYS_read, vec![Arg::Int(descriptor), Arg::Out(&mut bytes), Arg::Int(64)]);
    let got = trail.step("read", got)?;
    trail.detail(format!("{got} bytes"));
    Ok(())
}

/// `open-by-handle PATH`: by inode instead of by path, as the Shocker exploit did.
fn open_by_handle(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let mut handle = [0; 8 + 128];
    handle[..4].copy_from_slice(&128_u32.to_ne_bytes());
    let mut mount = [0; 4];
    let arguments = vec![CWD, Arg::Path(&path), Arg::Out(&mut handle), Arg::Out(&mut mount), NONE];
    trail.step("name_to_handle_at", call(libc::SYS_name_to_handle_at, arguments))?;
    let flags = Arg::Int(i64::from(libc::O_RDWR));
    let opened = call(libc::SYS_open_by_handle_at, vec![CWD, Arg::In(&handle), flags]);
    let descriptor = trail.step("open_by_handle_at", opened)?;
    mark(trail, descriptor, i64::from(libc::O_RDWR))
}
