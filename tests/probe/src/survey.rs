//! What can be done with each file of a list. Whatever is changed is changed back at once.

use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use nix::errno::Errno;
use nix::fcntl::renameat;

use crate::args::text;
use crate::attempt::{Attempt, Outcome, Stop, Trail};

pub(crate) const ATTEMPTS: &[Attempt] = &[("survey", survey)];

/// `survey FILE`: the file has lines `KIND PATH`, the kind being `directory`, `file` or `link`. The
/// detail has a line for each, of three words: what became of writing it, reading it, and moving
/// it. Something read is told by its device and inode.
fn survey(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let list = fs::read_to_string(text(arguments, 0)?)
        .map_err(|error| Stop::Misuse(format!("cannot read the list: {error}")))?;
    let mut detail = String::new();
    for line in list.lines() {
        let (kind, path) =
            line.split_once(' ').ok_or_else(|| Stop::Misuse(format!("{line:?} has no kind")))?;
        let [write, read, moved] = [write(kind, path), read(kind, path), rename(path)]
            .map(|result| result.unwrap_or_else(|error| name(&error)));
        // Writing to a string does not fail.
        let _ = writeln!(detail, "{write} {read} {moved}");
    }
    trail.detail(detail);
    Ok(())
}

fn name(error: &io::Error) -> String {
    format!("{:?}", Errno::from_raw(error.raw_os_error().unwrap_or_default()))
}

fn ok() -> String {
    "ok".to_owned()
}

/// Opens a file for writing, or makes something in a directory.
fn write(kind: &str, path: &str) -> io::Result<String> {
    match kind {
        "directory" => {
            let made = format!("{path}/made");
            fs::create_dir(&made)?;
            fs::remove_dir(made)?;
        }
        "file" => drop(File::options().write(true).open(path)?),
        _ => return Ok("-".to_owned()),
    }
    Ok(ok())
}

fn read(kind: &str, path: &str) -> io::Result<String> {
    let itself = if kind == "link" { libc::O_PATH } else { 0 };
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | itself;
    let found = File::options().read(true).custom_flags(flags).open(path)?.metadata()?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}

/// Moves it within its directory, which is held on to: what is moved may be on the way to it.
fn rename(path: &str) -> io::Result<String> {
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    let directory = File::options().read(true).custom_flags(libc::O_PATH).open(directory)?;
    let moved = format!("{name}.moved");
    renameat(&directory, name, &directory, &*moved)?;
    renameat(&directory, &*moved, &directory, name).inspect_err(|error| {
        eprintln!("{path}.moved cannot be moved back: {error}");
    })?;
    Ok(ok())
}
