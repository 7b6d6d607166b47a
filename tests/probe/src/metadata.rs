//! Modes, owners, times, extended attributes and file flags: Landlock governs none of them.

use crate::args::{number, path};
use crate::attempt::{Attempt, Outcome, Trail};
use crate::files::old;
use crate::numbers::{FCHMODAT2, FILE_SETATTR, SETXATTRAT};
use crate::sys::{Arg, CWD, NONE, address, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("chmod", chmod),
    ("chown", chown),
    ("fchmodat", fchmodat),
    ("fchmodat2", fchmodat2),
    ("file-setattr", file_setattr),
    ("removexattr", removexattr),
    ("set-flags", set_flags),
    ("set-flags-fd", set_flags_fd),
    ("setcap", setcap),
    ("setxattr", setxattr),
    ("setxattrat", setxattrat),
    ("utimensat", utimensat),
];

/// `_IOR('f', 1, long)`
const FS_IOC_GETFLAGS: i64 = 0x8008_6601;
/// `_IOW('f', 2, long)`; the flag is `FS_NODUMP_FL`, which an owner may set without a capability.
const FS_IOC_SETFLAGS: i64 = 0x4008_6602;
const FS_NODUMP_FL: u8 = 0x40;

/// `chmod PATH MODE`
fn chmod(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, mode) = (path(arguments, 0)?, number(arguments, 1)?);
    trail.step("chmod", call(old("chmod")?, vec![Arg::Path(&path), Arg::Int(mode)]))?;
    Ok(())
}

/// `fchmodat PATH MODE`
fn fchmodat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, mode) = (path(arguments, 0)?, number(arguments, 1)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(mode)];
    trail.step("fchmodat", call(libc::SYS_fchmodat, arguments))?;
    Ok(())
}

/// `fchmodat2 PATH MODE`
fn fchmodat2(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, mode) = (path(arguments, 0)?, number(arguments, 1)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(mode), NONE];
    trail.step("fchmodat2", call(FCHMODAT2, arguments))?;
    Ok(())
}

/// `chown PATH UID GID`
fn chown(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let (uid, gid) = (Arg::Int(number(arguments, 1)?), Arg::Int(number(arguments, 2)?));
    let arguments = vec![CWD, Arg::Path(&path), uid, gid, NONE];
    trail.step("fchownat", call(libc::SYS_fchownat, arguments))?;
    Ok(())
}

/// `utimensat PATH`: one second after the epoch.
fn utimensat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, times) = (path(arguments, 0)?, words(&[1, 0, 1, 0]));
    let arguments = vec![CWD, Arg::Path(&path), Arg::In(&times), NONE];
    trail.step("utimensat", call(libc::SYS_utimensat, arguments))?;
    Ok(())
}

/// `setxattr PATH NAME`
fn setxattr(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, name) = (path(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![Arg::Path(&path), Arg::Path(&name), Arg::In(b"1"), Arg::Int(1), NONE];
    trail.step("setxattr", call(libc::SYS_setxattr, arguments))?;
    Ok(())
}

/// `setxattrat PATH NAME`
fn setxattrat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, name) = (path(arguments, 0)?, path(arguments, 1)?);
    let value = b"1";
    // struct xattr_args: value, then size and flags, 32 bits each.
    let how = words(&[address(value), u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0])]);
    let arguments =
        vec![CWD, Arg::Path(&path), NONE, Arg::Path(&name), Arg::In(&how), Arg::Int(16)];
    trail.step("setxattrat", call(SETXATTRAT, arguments))?;
    Ok(())
}

/// `removexattr PATH NAME`
fn removexattr(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, name) = (path(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![Arg::Path(&path), Arg::Path(&name)];
    trail.step("removexattr", call(libc::SYS_removexattr, arguments))?;
    Ok(())
}

/// `setcap PATH`: every file capability, permitted and effective, as `setcap all=ep` writes it.
fn setcap(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let revision_2_effective = 0x0200_0001_u32;
    let all = [revision_2_effective, u32::MAX, 0, 0x1ff, 0];
    let value: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = Arg::Path(c"security.capability");
    let arguments = vec![Arg::Path(&path), name, Arg::In(&value), Arg::Int(20), NONE];
    trail.step("setxattr", call(libc::SYS_setxattr, arguments))?;
    Ok(())
}

/// `set-flags PATH`: through a descriptor that was only opened for reading.
fn set_flags(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let flags = Arg::Int(i64::from(libc::O_RDONLY | libc::O_NONBLOCK));
    let opened = call(libc::SYS_openat, vec![CWD, Arg::Path(&path), flags]);
    let descriptor = trail.step("openat", opened)?;
    set_flags_of(trail, descriptor)
}

/// `set-flags-fd FD`
fn set_flags_fd(trail: &mut Trail, arguments: &[String]) -> Outcome {
    set_flags_of(trail, number(arguments, 0)?)
}

fn set_flags_of(trail: &mut Trail, descriptor: i64) -> Outcome {
    // The others stay: a file system refuses to lose some of them, whoever asks.
    let mut flags = words(&[0]);
    let _unknown = call(
        libc::SYS_ioctl,
        vec![Arg::Int(descriptor), Arg::Int(FS_IOC_GETFLAGS), Arg::Out(&mut flags)],
    );
    flags[0] |= FS_NODUMP_FL;
    let arguments = vec![Arg::Int(descriptor), Arg::Int(FS_IOC_SETFLAGS), Arg::In(&flags)];
    trail.step("ioctl", call(libc::SYS_ioctl, arguments))?;
    Ok(())
}

/// `file-setattr PATH`: the call that replaces the ioctl.
fn file_setattr(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    // struct file_attr, 24 bytes: fa_xflags FS_XFLAG_NODUMP, the rest zero.
    let attributes = words(&[0x80, 0, 0]);
    let arguments = vec![CWD, Arg::Path(&path), Arg::In(&attributes), Arg::Int(24), NONE];
    trail.step("file_setattr", call(FILE_SETATTR, arguments))?;
    Ok(())
}
