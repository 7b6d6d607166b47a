//! The program's own file, as an image to execute that lies on no writable mount of the host.
//!
//! A process's /proc/PID/exe leads through the mount from which it was executed. Were that the
//! host's, a command that executes /proc/self/exe would keep this program's file in reach of chown
//! and chmod, past every mount of the sandbox (seen on Linux 6.18). So the process that becomes the
//! command executes this program once more, through the read-only mounts.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dsh_facts::Layer;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, FdFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::execveat;

use crate::error::{LayerError, Step};
use crate::layers::tree::open_canonical;

const LAYER: Layer = Layer::Descriptors;
const RUNNING: &str = "/proc/self/exe";

/// The argv[0] of the second execution.
pub(crate) const ARGV0: &str = "dsh-command";

/// Opens the running program by its name, which takes no right to read it; a copy in memory where the
/// name leads elsewhere, as after an upgrade.
pub(crate) fn open() -> Result<OwnedFd, LayerError> {
    let identity =
        std::fs::metadata(RUNNING).step(LAYER, "stat").map_err(|error| error.at(RUNNING))?;
    let named = std::fs::read_link(RUNNING).ok().and_then(|path| named(&path, &identity));
    named.map_or_else(copy, Ok)
}

fn named(path: &Path, identity: &std::fs::Metadata) -> Option<OwnedFd> {
    let image = open_canonical(AT_FDCWD, path).ok()?;
    let found = fstat(&image).ok()?;
    ((found.st_dev, found.st_ino) == (identity.dev(), identity.ino())).then_some(image)
}

fn copy() -> Result<OwnedFd, LayerError> {
    let mut running = File::open(RUNNING).step(LAYER, "open").map_err(|error| error.at(RUNNING))?;
    let copy = memfd_create("dsh-image", MFdFlags::MFD_CLOEXEC).step(LAYER, "memfd_create")?;
    let mut copy = File::from(copy);
    std::io::copy(&mut running, &mut copy).step(LAYER, "copy the program")?;
    Ok(copy.into())
}

/// Executes the image with these descriptors and nothing of the environment. Returns only on
/// failure.
pub(crate) fn execute(
    image: BorrowedFd<'_>,
    plan: BorrowedFd<'_>,
    status: BorrowedFd<'_>,
    script: Option<BorrowedFd<'_>>,
) -> LayerError {
    let mut arguments: Vec<CString> = CString::new(ARGV0).into_iter().collect();
    for descriptor in [Some(plan), Some(status), script].into_iter().flatten() {
        if let Err(errno) = fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty())) {
            return LayerError::new(LAYER, "F_SETFD", errno);
        }
        arguments.extend(CString::new(descriptor.as_raw_fd().to_string()));
    }
    let nothing: [CString; 0] = [];
    match execveat(image, c"", &arguments, &nothing, AtFlags::AT_EMPTY_PATH) {
        Ok(never) => match never {},
        Err(errno) => LayerError::new(LAYER, "execveat", errno).at(RUNNING),
    }
}

/// What [`execute`] handed over.
pub(crate) struct HandedOver {
    pub(crate) plan: OwnedFd,
    pub(crate) status: OwnedFd,
    pub(crate) script: Option<OwnedFd>,
}

/// Takes over what [`execute`] passed, by the program's arguments.
pub(crate) fn take_over(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<HandedOver, Errno> {
    let mut next = || -> Result<Option<OwnedFd>, Errno> {
        let Some(argument) = arguments.next() else { return Ok(None) };
        let number: i32 =
            argument.to_str().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)?;
        let copy = dsh_kernel::descriptors::duplicate(number)?;
        dsh_kernel::descriptors::close_on_exec(number)?;
        Ok(Some(copy))
    };
    let plan = next()?.ok_or(Errno::EINVAL)?;
    let status = next()?.ok_or(Errno::EINVAL)?;
    Ok(HandedOver { plan, status, script: next()? })
}
