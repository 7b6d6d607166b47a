//! Being the warden of another instance of the same program, or the process that becomes a command.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::unistd::getppid;

use crate::{command, image, warden};

/// The argv[0] that asks for it.
pub(crate) const ARGV0: &str = "dsh-warden";

/// Becomes the warden if that is what this process was started for; otherwise returns at once.
///
/// Call it first thing in `main`, before there is a second thread: a warden forks. It takes both
/// the name and, as standard input, a sequenced-packet socket whose other end the parent made, so
/// no command line and no environment turns a program into a warden by accident.
pub fn dispatch() {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    if name.as_bytes() == image::ARGV0.as_bytes() {
        if let Ok(handed) = image::take_over(arguments) {
            command::resume(handed);
        }
        return;
    }
    if name.as_bytes() != ARGV0.as_bytes() {
        return;
    }
    let input = std::io::stdin();
    let is_control = getsockopt(&input, sockopt::SockType) == Ok(SockType::SeqPacket)
        && getsockopt(&input, sockopt::PeerCredentials)
            .is_ok_and(|peer| peer.pid() == getppid().as_raw());
    if !is_control {
        return;
    }
    debug_assert_eq!(input.as_raw_fd(), 0);
    if let Ok(control) = input.as_fd().try_clone_to_owned() {
        warden::run(control)
    }
}
