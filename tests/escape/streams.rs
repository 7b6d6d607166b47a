//! The descriptors that a command starts with: 0–2, and those that somebody forgot to close.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::host::Host;
use crate::table::{Attack, Stream};

/// A writable host file.
const FORGOTTEN_FILE: i32 = 9;
/// A host directory.
const FORGOTTEN_DIR: i32 = 10;
/// Where `--facts-fd` may write.
const FACTS: i32 = 11;

/// The file in the granted directory that the command's stdout is, where that is a file.
pub(crate) const STDOUT_FILE: &str = "stdout";

/// Keeps the numbers of the forgotten descriptors taken in this process, so that nothing else gets
/// them by chance: the standard library's own pipe to a new child would be overwritten.
pub(crate) fn reserve_forgotten() -> io::Result<()> {
    let null = File::open("/dev/null")?;
    for number in [FORGOTTEN_FILE, FORGOTTEN_DIR, FACTS] {
        // SAFETY: called first thing in main, when nothing owns a descriptor above 2 but `null`,
        // which is the lowest free number and so none of these.
        let reserved = unsafe { nix::unistd::dup3_raw(&null, number, OFlag::O_CLOEXEC) }?;
        let _stays_open = reserved.into_raw_fd();
    }
    Ok(())
}

/// Sets up every descriptor of the command.
pub(crate) fn connect(command: &mut Command, attack: &Attack, host: &Host) -> io::Result<()> {
    command.stdin(match attack.stdin {
        Stream::Usual => Stdio::null(),
        Stream::File => File::open(host.files.join("stdin"))?.into(),
        stream => other(stream, host, "stdin")?,
    });
    command.stdout(output(attack.stdout, host, STDOUT_FILE)?);
    command.stderr(output(attack.stderr, host, "stderr")?);
    forget(command, host)
}

fn output(stream: Stream, host: &Host, name: &str) -> io::Result<Stdio> {
    match stream {
        Stream::Usual => Ok(Stdio::piped()),
        Stream::File => Ok(File::options().write(true).open(host.granted.join(name))?.into()),
        stream => other(stream, host, name),
    }
}

fn other(stream: Stream, host: &Host, name: &str) -> io::Result<Stdio> {
    let open = |path: &Path, flags: OFlag| {
        OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
    };
    Ok(match stream {
        Stream::Usual | Stream::Pipe | Stream::File => Stdio::piped(),
        Stream::ReadWriteFile => {
            OpenOptions::new().read(true).write(true).open(host.files.join(name))?.into()
        }
        Stream::HiddenFile => File::open(host.hidden.join("file"))?.into(),
        // Without O_NONBLOCK the open would wait for a writer.
        Stream::Fifo => open(&host.files.join("fifo"), OFlag::O_NONBLOCK)?.into(),
        Stream::CharDevice => open(&host.files.join("log-device"), OFlag::O_NONBLOCK)?.into(),
        Stream::Directory => File::open(&host.files)?.into(),
        Stream::PathOnly => open(&host.files.join("file"), OFlag::O_PATH)?.into(),
        Stream::BlockDevice => {
            open(&host.workspace.join("block-device"), OFlag::O_NONBLOCK)?.into()
        }
        Stream::Terminal => host.terminal()?.into(),
    })
}

/// Leaves descriptors open in the child that nobody means it to have.
fn forget(command: &mut Command, host: &Host) -> io::Result<()> {
    let writable = OpenOptions::new().read(true).write(true).open(host.files.join("other"))?;
    let forgotten = [
        (above(&writable)?, FORGOTTEN_FILE),
        (above(&File::open(&host.files)?)?, FORGOTTEN_DIR),
        (above(&File::options().write(true).open(host.granted.join("facts"))?)?, FACTS),
    ];
    let leave_open = move || {
        for (source, number) in &forgotten {
            // SAFETY: in this process the number belongs to `reserve_forgotten`, which gave up its
            // ownership.
            let left = unsafe { nix::unistd::dup2_raw(source, *number) }?;
            let _stays_open = left.into_raw_fd();
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only calls dup2, which is async-signal-safe, and
    // moves numbers about.
    unsafe { command.pre_exec(leave_open) };
    Ok(())
}

/// A duplicate whose number is none of the forgotten ones.
fn above(file: &File) -> io::Result<OwnedFd> {
    let number = fcntl(file, FcntlArg::F_DUPFD_CLOEXEC(FACTS + 1))?;
    debug_assert_ne!(number, file.as_raw_fd());
    // SAFETY: fcntl has just made the descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
