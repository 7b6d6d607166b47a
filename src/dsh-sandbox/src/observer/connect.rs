//! Connecting a caller's socket in its place: to the address that was read and checked, whatever the
//! caller has made of its memory since, and with the caller's own ids.
//!
//! The process that connects is in the command's pid namespace, so that peers see a process of the
//! command's (unix(7), `SO_PEERCRED`). Another, outside, waits for it and answers: a connect can
//! wait for long, and nobody else must.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use dsh_kernel::process::{Fork, exit_now, fork};
use dsh_kernel::{connection, descriptors, notification, pidfd};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{SockType, SockaddrStorage, getpeername, getsockopt, sockopt};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::caller::{Caller, Identity, Numbers};
use super::worker::take_identity;

/// The longest address that the kernel takes: `struct sockaddr_storage`.
pub(super) const ADDRESS_MAX: usize = 128;
/// The longest address of a unix socket: `struct sockaddr_un`.
const UNIX_MAX: usize = 110;
/// Where the path begins in it.
const PATH_AT: usize = 2;
/// "Call again, or not, as the signal's handler has it": the kernel's own errno, which it takes
/// from a supervisor too and does not show to a program that has a signal to handle.
const ERESTARTSYS: i32 = 512;
/// How often a caller that waits is looked after: it may have a signal to handle.
const LOOK: u16 = 10;

/// What an address means for a socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Destination<'a> {
    /// A unix socket with a name in the file system.
    Path(&'a [u8]),
    /// A unix socket with an abstract name.
    Abstract(&'a [u8]),
    /// Anything else, which other layers govern, or which the kernel refuses.
    Other,
}

/// What an address means for a socket of this family, unix(7).
pub(super) fn destination(domain: i32, address: &[u8]) -> Destination<'_> {
    let family = address.first_chunk::<2>().map(|bytes| i32::from(u16::from_ne_bytes(*bytes)));
    if domain != libc::AF_UNIX || family != Some(libc::AF_UNIX) || address.len() > UNIX_MAX {
        return Destination::Other;
    }
    match &address[PATH_AT..] {
        [] => Destination::Other,
        [0, name @ ..] => Destination::Abstract(name),
        path => Destination::Path(path.split(|&byte| byte == 0).next().unwrap_or(path)),
    }
}

/// Whether connecting cannot keep anybody waiting.
pub(super) fn is_instant(socket: BorrowedFd<'_>) -> bool {
    let flags = fcntl(socket, FcntlArg::F_GETFL).unwrap_or(0);
    flags & OFlag::O_NONBLOCK.bits() != 0
        || getsockopt(&socket, sockopt::SockType) == Ok(SockType::Datagram)
}

/// A connection to be made.
pub(super) struct Connection<'a> {
    pub(super) listener: BorrowedFd<'a>,
    /// Names the call that waits.
    pub(super) id: u64,
    pub(super) caller: Caller<'a>,
    pub(super) numbers: Numbers,
    pub(super) identity: &'a Identity,
    /// The command's pid namespace, where it has one.
    pub(super) pid_namespace: Option<BorrowedFd<'a>>,
    pub(super) socket: OwnedFd,
    /// The address, unless the file is one.
    pub(super) address: &'a [u8],
    /// The unix socket to connect to.
    pub(super) file: Option<OwnedFd>,
}

impl Connection<'_> {
    /// Has a process make it and answer the call.
    ///
    /// # Errors
    ///
    /// That of making the process: the call is not answered then.
    pub(super) fn start(self) -> Result<(), Errno> {
        match fork(CloneFlags::empty())? {
            Fork::Parent { .. } => Ok(()),
            Fork::Child => {
                let mut kept = vec![self.listener, self.caller.proc, self.socket.as_fd()];
                kept.extend(self.file.as_ref().map(AsFd::as_fd));
                kept.extend(self.pid_namespace);
                let ready =
                    set_pdeathsig(Signal::SIGKILL).and_then(|()| descriptors::close_all_but(&kept));
                let result = ready.and_then(|()| self.make());
                let _ = match result {
                    Ok(0) => notification::succeed(self.listener, self.id, 0),
                    Ok(errno) => notification::fail(self.listener, self.id, errno),
                    Err(_) => notification::fail(self.listener, self.id, libc::EACCES),
                };
                exit_now(0)
            }
        }
    }

    /// Connects in a process of the command's own, and waits for it. Returns the errno, or 0.
    fn make(&self) -> Result<i32, Errno> {
        if let Some(namespace) = self.pid_namespace {
            setns(namespace, CloneFlags::CLONE_NEWPID)?;
        }
        let (child, handle) = match fork(CloneFlags::empty())? {
            Fork::Child => {
                // It is within the command's reach: it holds no more than it needs.
                let mut kept = vec![self.socket.as_fd()];
                kept.extend(self.file.as_ref().map(AsFd::as_fd));
                let errno = set_pdeathsig(Signal::SIGKILL)
                    .and_then(|()| descriptors::close_all_but(&kept))
                    .and_then(|()| take_identity(self.identity, &[]))
                    .and_then(|()| self.connect());
                exit_now(errno.map_or_else(|errno| errno as i32, |()| 0))
            }
            Fork::Parent { child, pidfd } => (child, pidfd),
        };
        let mut before = Interruption::None;
        loop {
            let mut ended = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ended, PollTimeout::from(LOOK)) != Ok(0) {
                return ended_with(child);
            }
            if !notification::waits(self.listener, self.id) {
                end(child, &handle);
                return Ok(libc::EINTR);
            }
            // One that another thread has taken is gone at the second look.
            let now = self.interruption();
            if now != Interruption::None && now == before {
                end(child, &handle);
                // It may have come so far: then the signal came after the call.
                if is_connected(self.socket.as_fd()) {
                    return Ok(0);
                }
                let timed = connection::has_send_timeout(self.socket.as_fd()) == Ok(true);
                let certain = now == Interruption::Certain && !timed;
                return Ok(if certain { ERESTARTSYS } else { libc::EINTR });
            }
            before = now;
        }
    }

    /// Whether a signal waits that the calling thread is to handle. The kernel gives one that is for
    /// the process to its first thread, if that takes it, and else to any (signal(7)).
    fn interruption(&self) -> Interruption {
        let Ok(signals) = self.caller.signals() else { return Interruption::None };
        let first = Caller { thread: self.numbers.process, ..self.caller };
        if signals.own != 0 || (signals.shared != 0 && first.thread == self.caller.thread) {
            return Interruption::Certain;
        }
        let of_first = first.signals().map_or(0, |signals| signals.takes);
        if signals.shared & !of_first != 0 { Interruption::Possible } else { Interruption::None }
    }

    fn connect(&self) -> Result<(), Errno> {
        let Some(file) = &self.file else {
            return connection::connect(self.socket.as_fd(), self.address);
        };
        let mut address = u16::try_from(libc::AF_UNIX).unwrap_or(1).to_ne_bytes().to_vec();
        address.extend_from_slice(format!("/proc/self/fd/{}\0", file.as_raw_fd()).as_bytes());
        connection::connect(self.socket.as_fd(), &address)
    }
}

fn is_connected(socket: BorrowedFd<'_>) -> bool {
    getpeername::<SockaddrStorage>(socket.as_raw_fd()).is_ok()
}

/// Ends the process that connects, and takes note of it: init waits for all of its namespace.
fn end(child: Pid, handle: &OwnedFd) {
    let _ = pidfd::send_signal(handle.as_fd(), Signal::SIGKILL);
    let _ = waitpid(child, None);
}

/// Whether the calling thread has a signal to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    None,
    /// It, or another thread that takes the signal.
    Possible,
    Certain,
}

fn ended_with(child: Pid) -> Result<i32, Errno> {
    match waitpid(child, None)? {
        WaitStatus::Exited(_, errno) => Ok(errno),
        // Killed, by the command itself.
        _ => Ok(libc::EINTR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(rest: &[u8]) -> Vec<u8> {
        [&1_u16.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn an_address_means_what_the_kernel_makes_of_it() {
        let (local, inet) = (libc::AF_UNIX, libc::AF_INET);
        assert_eq!(destination(local, &unix(b"/a\0b")), Destination::Path(b"/a"));
        assert_eq!(destination(local, &unix(b"/a")), Destination::Path(b"/a"));
        assert_eq!(destination(local, &unix(b"\0a\0b")), Destination::Abstract(b"a\0b"));
        assert_eq!(destination(local, &unix(b"")), Destination::Other);
        assert_eq!(destination(local, &[1]), Destination::Other);
        assert_eq!(destination(inet, &unix(b"/a")), Destination::Other);
        assert_eq!(destination(local, &unix(&[b'a'; 109])), Destination::Other);
    }
}
