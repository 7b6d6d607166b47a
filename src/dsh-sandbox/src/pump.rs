//! Feeds a file through a pipe, so that the command reads its content and never holds the file.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use dsh_facts::Layer;
use dsh_kernel::process::{Fork, exit_now, fork};
use nix::fcntl::OFlag;
use nix::sched::CloneFlags;
use nix::unistd::{Pid, pipe2};

use crate::error::{LayerError, Step};

/// A process that copies a file into a pipe, and ends when nobody reads it any more.
pub(crate) struct Pump {
    /// It, to be waited for.
    pub(crate) process: Pid,
    /// The end to read.
    pub(crate) output: OwnedFd,
}

/// Starts to feed `file` from its current offset.
pub(crate) fn start(file: OwnedFd) -> Result<Pump, LayerError> {
    let layer = Layer::Descriptors;
    let (output, input) = pipe2(OFlag::O_CLOEXEC).step(layer, "pipe2")?;
    match fork(CloneFlags::empty()).step(layer, "fork")? {
        Fork::Parent { child, .. } => Ok(Pump { process: child, output }),
        Fork::Child => {
            drop(output);
            let kept = [file.as_fd(), input.as_fd()];
            if dsh_kernel::descriptors::close_all_but(&kept).is_ok() {
                // An error is the reader's end: EPIPE.
                let _ = std::io::copy(&mut File::from(file), &mut File::from(input));
            }
            exit_now(0)
        }
    }
}
