//! Making, moving and removing names.

use crate::args::{flags, number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::descriptors::magic_link;
use crate::files::old;
use crate::sys::{Arg, CWD, NONE, call};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("link", link),
    ("link-by-descriptor", link_by_descriptor),
    ("mkdir", mkdir),
    ("mknod", mknod),
    ("mknodat", mknodat),
    ("plant-parent", plant_parent),
    ("relink", relink),
    ("rename", rename),
    ("rmdir", rmdir),
    ("symlink", symlink),
    ("unlink", unlink),
];

const RENAME_FLAGS: &[(&str, i64)] = &[("NOREPLACE", 1), ("EXCHANGE", 2), ("WHITEOUT", 4)];

/// `rename OLD NEW [FLAGS]`
fn rename(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (from, to) = (path(arguments, 0)?, path(arguments, 1)?);
    let flags = if arguments.len() > 2 { flags(arguments, 2, RENAME_FLAGS)? } else { 0 };
    let arguments = vec![CWD, Arg::Path(&from), CWD, Arg::Path(&to), Arg::Int(flags)];
    trail.step("renameat2", call(libc::SYS_renameat2, arguments))?;
    Ok(())
}

/// `link OLD NEW`
fn link(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (from, to) = (path(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![CWD, Arg::Path(&from), CWD, Arg::Path(&to), NONE];
    trail.step("linkat", call(libc::SYS_linkat, arguments))?;
    Ok(())
}

/// `link-by-descriptor OLD NEW`: by an O_PATH descriptor, which needs no right on the file.
fn link_by_descriptor(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (from, to) = (path(arguments, 0)?, path(arguments, 1)?);
    let flags = Arg::Int(i64::from(libc::O_PATH));
    let opened = call(libc::SYS_openat, vec![CWD, Arg::Path(&from), flags]);
    let from = magic_link(trail.step("openat", opened)?);
    let follow = Arg::Int(i64::from(libc::AT_SYMLINK_FOLLOW));
    let arguments = vec![CWD, Arg::Path(&from), CWD, Arg::Path(&to), follow];
    trail.step("linkat", call(libc::SYS_linkat, arguments))?;
    Ok(())
}

/// `symlink TARGET PATH`
fn symlink(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (target, path) = (path(arguments, 0)?, path(arguments, 1)?);
    let arguments = vec![Arg::Path(&target), CWD, Arg::Path(&path)];
    trail.step("symlinkat", call(libc::SYS_symlinkat, arguments))?;
    Ok(())
}

/// `plant-parent DIR TARGET`: moves a directory above the workspace away and puts a symlink in its
/// place, for the next set-up to follow.
fn plant_parent(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let dir = text(arguments, 0)?;
    rename(trail, &[dir.clone(), format!("{dir}-moved")])?;
    symlink(trail, &[text(arguments, 1)?, dir])
}

/// `relink TARGET PATH`: lets a symlink lead somewhere else.
fn relink(trail: &mut Trail, arguments: &[String]) -> Outcome {
    unlink(trail, &[text(arguments, 1)?])?;
    symlink(trail, arguments)
}

/// `unlink PATH`
fn unlink(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("unlinkat", call(libc::SYS_unlinkat, vec![CWD, Arg::Path(&path), NONE]))?;
    Ok(())
}

/// `rmdir PATH`
fn rmdir(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(i64::from(libc::AT_REMOVEDIR))];
    trail.step("unlinkat", call(libc::SYS_unlinkat, arguments))?;
    Ok(())
}

/// `mkdir PATH MODE`
fn mkdir(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, mode) = (path(arguments, 0)?, number(arguments, 1)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(mode)];
    trail.step("mkdirat", call(libc::SYS_mkdirat, arguments))?;
    Ok(())
}

/// The arguments of mknod after the path: `KIND MODE [MAJOR:MINOR]`.
fn node(arguments: &[String]) -> Result<(i64, i64), Stop> {
    let kind = match text(arguments, 1)?.as_str() {
        "regular" => libc::S_IFREG,
        "fifo" => libc::S_IFIFO,
        "char" => libc::S_IFCHR,
        "block" => libc::S_IFBLK,
        other => return Err(Stop::Misuse(format!("unknown kind of node {other:?}"))),
    };
    let device = match arguments.get(3).and_then(|device| device.split_once(':')) {
        Some((major, minor)) => {
            let numbers = [major.to_owned(), minor.to_owned()];
            (number(&numbers, 0)? << 8) | number(&numbers, 1)?
        }
        None => 0,
    };
    Ok((i64::from(kind) | number(arguments, 2)?, device))
}

/// `mknodat PATH KIND MODE [MAJOR:MINOR]`
fn mknodat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, (mode, device)) = (path(arguments, 0)?, node(arguments)?);
    let arguments = vec![CWD, Arg::Path(&path), Arg::Int(mode), Arg::Int(device)];
    trail.step("mknodat", call(libc::SYS_mknodat, arguments))?;
    Ok(())
}

/// `mknod PATH KIND MODE [MAJOR:MINOR]`
fn mknod(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, (mode, device)) = (path(arguments, 0)?, node(arguments)?);
    let arguments = vec![Arg::Path(&path), Arg::Int(mode), Arg::Int(device)];
    trail.step("mknod", call(old("mknod")?, arguments))?;
    Ok(())
}
