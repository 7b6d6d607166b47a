//! Descriptors: 0, 1 and 2 made safe, everything else closed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use dsh_facts::Layer;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::unistd::{Whence, dup2_stderr, dup2_stdin, dup2_stdout, lseek};

use crate::error::{LayerError, Step};
use crate::stdio::{Stdio, StdioPlan};

const LAYER: Layer = Layer::Descriptors;

/// Opens the files of the plan again, through the read-only mounts of the sandbox's own tree where
/// it has one.
///
/// Before the scratch and the new /dev cover any of them.
pub(crate) fn reopen_files(
    plan: &StdioPlan,
    descriptors: &mut [OwnedFd; 3],
) -> Result<(), LayerError> {
    for (stdio, descriptor) in plan.descriptors.iter().zip(descriptors) {
        if let Stdio::Reopen { path, device, inode, flags, offset } = stdio {
            *descriptor = reopen(path, (*device, *inode), *flags, *offset)?;
        }
    }
    Ok(())
}

/// Opens the devices of the plan again, in the sandbox's own /dev.
pub(crate) fn reopen_devices(
    plan: &StdioPlan,
    descriptors: &mut [OwnedFd; 3],
) -> Result<(), LayerError> {
    for (stdio, descriptor) in plan.descriptors.iter().zip(descriptors) {
        match stdio {
            Stdio::Device { name, flags } => {
                *descriptor = open(&Path::new("/dev").join(name), *flags)?.into();
            }
            Stdio::Terminal { flags } => {
                *descriptor = open(Path::new("/dev/console"), *flags)?.into();
            }
            _ => {}
        }
    }
    Ok(())
}

fn reopen(
    path: &OsString,
    identity: (u64, u64),
    flags: i32,
    offset: Option<i64>,
) -> Result<OwnedFd, LayerError> {
    // Without O_NONBLOCK a named pipe would wait for its other end.
    let file = open(Path::new(path), flags | libc::O_NOFOLLOW | libc::O_NONBLOCK)?;
    let failed = |step, errno| LayerError::new(LAYER, step, errno).at(path);
    let found = file.metadata().step(LAYER, "fstat").map_err(|error| error.at(path))?;
    if (found.dev(), found.ino()) != identity {
        // Another file has taken the name since the plan was made.
        return Err(failed("compare", Errno::ESTALE));
    }
    if let Some(offset) = offset {
        lseek(&file, offset, Whence::SeekSet).map_err(|errno| failed("lseek", errno))?;
    }
    let status = OFlag::from_bits_truncate(flags & libc::O_NONBLOCK);
    fcntl(&file, FcntlArg::F_SETFL(status)).map_err(|errno| failed("F_SETFL", errno))?;
    Ok(file.into())
}

fn open(path: &Path, flags: i32) -> Result<File, LayerError> {
    let access = flags & libc::O_ACCMODE;
    OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(flags)
        .open(path)
        .step(LAYER, "open")
        .map_err(|error| error.at(path))
}

/// Puts the three descriptors in their places.
pub(crate) fn install(descriptors: &[OwnedFd; 3]) -> Result<(), LayerError> {
    let [input, output, error] = descriptors;
    dup2_stdin(input).step(LAYER, "dup2")?;
    dup2_stdout(output).step(LAYER, "dup2")?;
    dup2_stderr(error).step(LAYER, "dup2")
}

/// The number under which a command inherits its script: high, so that no script of people's own
/// uses it.
pub const SCRIPT: i32 = 63;

/// Has exec close everything but 0, 1 and 2, and the script, if there is one.
pub(crate) fn close_rest_on_exec(script: Option<&OwnedFd>) -> Result<(), LayerError> {
    match dsh_kernel::descriptors::close_on_exec_from(3) {
        Ok(()) => {}
        // Linux 5.9 and 5.10 have close_range without the flag; everything that this process
        // opened has it already, and what it inherited was closed when it was forked.
        Err(Errno::EINVAL) => {}
        Err(errno) => return Err(LayerError::new(LAYER, "close_range", errno)),
    }
    match script {
        Some(script) => dsh_kernel::descriptors::place(script.as_fd(), SCRIPT).step(LAYER, "dup"),
        None => Ok(()),
    }
}
