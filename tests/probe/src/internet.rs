//! Internet sockets as programs use them, within one network.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SaFlags;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, accept, bind,
    connect, getpeername, getsockname, getsockopt, listen, recv, send, socket, sockopt,
};

use crate::args::text;
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, call};
use crate::unix::{alarm_after, handle_alarm, handled};

pub(crate) const ATTEMPTS: &[Attempt] = &[("tcp", tcp), ("udp", udp)];

/// The loopback address of a family, with a port that the kernel picks where it is 0.
fn loopback(family: &str, port: u16) -> Result<SockaddrStorage, Stop> {
    match family {
        "4" => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()),
        "6" => Ok(SocketAddr::from((Ipv6Addr::LOCALHOST, port)).into()),
        other => Err(Stop::Misuse(format!("unknown family {other:?}"))),
    }
}

fn made(trail: &mut Trail, address: &SockaddrStorage, kind: SockType) -> Result<OwnedFd, Stop> {
    let family = address.family().unwrap_or(AddressFamily::Inet);
    trail.step("socket", socket(family, kind, SockFlag::empty(), None))
}

/// Somebody bound to a port, and the address.
fn bound(
    trail: &mut Trail,
    family: &str,
    kind: SockType,
) -> Result<(OwnedFd, SockaddrStorage), Stop> {
    let any = loopback(family, 0)?;
    let socket = made(trail, &any, kind)?;
    trail.step("bind", bind(socket.as_raw_fd(), &any))?;
    let address = trail.step("getsockname", getsockname(socket.as_raw_fd()))?;
    Ok((socket, address))
}

fn set_nonblocking(socket: &OwnedFd) -> Result<(), Stop> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let set = fcntl(socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    set.map(|_| ()).map_err(|errno| Stop::Misuse(format!("fcntl: {errno}")))
}

/// Ends a connection as connect(2) says: an address of no family.
fn disconnect(trail: &mut Trail, socket: &OwnedFd) -> Outcome {
    let nowhere = [0; 16];
    let arguments = vec![Arg::Int(socket.as_raw_fd().into()), Arg::In(&nowhere), Arg::Int(16)];
    trail.step("disconnect", call(libc::SYS_connect, arguments))?;
    let peer = getpeername::<SockaddrStorage>(socket.as_raw_fd());
    trail.detail(format!("then {:?}", peer.err().unwrap_or(Errno::UnknownErrno)));
    Ok(())
}

/// `tcp FAMILY HOW`: connects to a listener of its own (`blocking`, `nonblocking`), to one whose
/// backlog is full when an alarm comes (`alarm`), or to nobody (`refused`); or ends its connection
/// again (`disconnect`).
fn tcp(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (family, how) = (text(arguments, 0)?, text(arguments, 1)?);
    let (listening, address) = bound(trail, &family, SockType::Stream)?;
    let here = made(trail, &address, SockType::Stream)?;
    let backlog = Backlog::new(0).map_err(|errno| Stop::Misuse(errno.to_string()))?;
    match how.as_str() {
        "refused" => {}
        _ => trail.step("listen", listen(&listening, backlog))?,
    }
    match how.as_str() {
        "alarm" => return tcp_alarm(trail, &address),
        "nonblocking" => {
            set_nonblocking(&here)?;
            match connect(here.as_raw_fd(), &address) {
                Ok(()) | Err(Errno::EINPROGRESS) => {}
                Err(errno) => return trail.step("connect", Err(errno)),
            }
            let mut ready = [PollFd::new(here.as_fd(), PollFlags::POLLOUT)];
            trail.step("poll", poll(&mut ready, PollTimeout::from(5000_u16)))?;
            let error = trail.step("getsockopt", getsockopt(&here, sockopt::SocketError))?;
            trail.detail(format!("error {error}"));
        }
        "blocking" | "refused" | "disconnect" => {
            trail.step("connect", connect(here.as_raw_fd(), &address))?;
        }
        other => return Err(Stop::Misuse(format!("unknown way {other:?}"))),
    }
    let there = trail.step("accept", accept(&listening))?;
    trail.step("send", send(there.as_raw_fd(), b"x", nix::sys::socket::MsgFlags::empty()))?;
    trail.step("recv", recv(here.as_raw_fd(), &mut [0], nix::sys::socket::MsgFlags::empty()))?;
    if how == "disconnect" { disconnect(trail, &here) } else { Ok(()) }
}

/// Connects until one has to wait, and is woken by the alarm.
fn tcp_alarm(trail: &mut Trail, address: &SockaddrStorage) -> Outcome {
    const MOST: usize = 10;
    handle_alarm(SaFlags::empty())?;
    let mut waiting = Vec::new();
    alarm_after(500_000, 500_000)?;
    while waiting.len() < MOST {
        let one = made(trail, address, SockType::Stream)?;
        match connect(one.as_raw_fd(), address) {
            Ok(()) => waiting.push(one),
            Err(errno) => {
                trail.detail(format!("signals: {}", handled() > 0));
                return trail.step("connect", Err(errno));
            }
        }
    }
    std::thread::sleep(Duration::from_millis(1));
    Err(Stop::Misuse("there is always room".to_owned()))
}

/// `udp FAMILY HOW`: connects to a socket of its own and sends there (`connected`), then ends the
/// connection (`disconnect`).
fn udp(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (family, how) = (text(arguments, 0)?, text(arguments, 1)?);
    let (there, address) = bound(trail, &family, SockType::Datagram)?;
    let here = made(trail, &address, SockType::Datagram)?;
    trail.step("connect", connect(here.as_raw_fd(), &address))?;
    trail.step("send", send(here.as_raw_fd(), b"x", nix::sys::socket::MsgFlags::empty()))?;
    trail.step("recv", recv(there.as_raw_fd(), &mut [0], nix::sys::socket::MsgFlags::empty()))?;
    match how.as_str() {
        "connected" => Ok(()),
        "disconnect" => disconnect(trail, &here),
        other => Err(Stop::Misuse(format!("unknown way {other:?}"))),
    }
}
