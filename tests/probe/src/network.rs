//! Sockets: families that should not exist, and ways to somebody outside.

use crate::args::{number, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, NONE, call};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("connect-abstract", connect_abstract),
    ("connect-path", connect_path),
    ("connect-tcp", connect_tcp),
    ("bind-path", bind_path),
    ("send-udp", send_udp),
    ("socket", socket),
    ("socketpair", socketpair),
];

const FAMILIES: &[(&str, i64)] = &[
    ("ALG", libc::AF_ALG as i64),
    ("INET", libc::AF_INET as i64),
    ("KEY", libc::AF_KEY as i64),
    ("NETLINK", libc::AF_NETLINK as i64),
    ("PACKET", libc::AF_PACKET as i64),
    ("RXRPC", libc::AF_RXRPC as i64),
    ("UNIX", libc::AF_UNIX as i64),
    ("VSOCK", libc::AF_VSOCK as i64),
];

const TYPES: &[(&str, i64)] = &[
    ("STREAM", libc::SOCK_STREAM as i64),
    ("DGRAM", libc::SOCK_DGRAM as i64),
    ("RAW", libc::SOCK_RAW as i64),
    ("SEQPACKET", libc::SOCK_SEQPACKET as i64),
];

fn named(what: &str, word: &str, known: &[(&str, i64)]) -> Result<i64, Stop> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| Stop::Misuse(format!("unknown {what} {word:?}")))
}

fn family_and_type(arguments: &[String]) -> Result<(Arg<'static>, Arg<'static>), Stop> {
    let family = named("family", &text(arguments, 0)?, FAMILIES)?;
    // A flag bit goes with each type: a filter that compares the whole word instead of the low four
    // bits lets it pass.
    let kind = named("type", &text(arguments, 1)?, TYPES)? | i64::from(libc::SOCK_CLOEXEC);
    Ok((Arg::Int(family), Arg::Int(kind)))
}

/// `socket FAMILY TYPE PROTOCOL`
fn socket(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (family, kind) = family_and_type(arguments)?;
    let arguments = vec![family, kind, Arg::Int(number(arguments, 2)?)];
    trail.step("socket", call(libc::SYS_socket, arguments))?;
    Ok(())
}

/// `socketpair FAMILY TYPE`
fn socketpair(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (family, kind) = family_and_type(arguments)?;
    let mut pair = [0; 8];
    let arguments = vec![family, kind, NONE, Arg::Out(&mut pair)];
    trail.step("socketpair", call(libc::SYS_socketpair, arguments))?;
    Ok(())
}

fn open_socket(trail: &mut Trail, family: &str, kind: &str) -> Result<i64, Stop> {
    let family = Arg::Int(named("family", family, FAMILIES)?);
    let kind = Arg::Int(named("type", kind, TYPES)?);
    trail.step("socket", call(libc::SYS_socket, vec![family, kind, NONE]))
}

/// Passes an address to `connect` or `bind`.
fn with_address(
    trail: &mut Trail,
    name: &'static str,
    number: libc::c_long,
    socket: i64,
    address: &[u8],
) -> Outcome {
    let length = i64::try_from(address.len()).unwrap_or_default();
    let arguments = vec![Arg::Int(socket), Arg::In(address), Arg::Int(length)];
    trail.step(name, call(number, arguments))?;
    Ok(())
}

/// `sockaddr_un`: the family, then a path or NUL and an abstract name.
fn unix_address(first: &[u8], name: &str) -> Vec<u8> {
    [&1_u16.to_ne_bytes(), first, name.as_bytes()].concat()
}

/// `sockaddr_in` of 127.0.0.1.
fn loopback_address(port: i64) -> Vec<u8> {
    let port = u16::try_from(port).unwrap_or_default().to_be_bytes();
    [&2_u16.to_ne_bytes()[..], &port, &[127, 0, 0, 1], &[0; 8]].concat()
}

/// `connect-abstract NAME TYPE`: a socket of the host that has no file.
fn connect_abstract(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (name, kind) = (text(arguments, 0)?, text(arguments, 1)?);
    let socket = open_socket(trail, "UNIX", &kind)?;
    with_address(trail, "connect", libc::SYS_connect, socket, &unix_address(b"\0", &name))
}

/// `connect-path PATH`: a socket of the host that has a file.
fn connect_path(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = text(arguments, 0)?;
    let socket = open_socket(trail, "UNIX", "STREAM")?;
    with_address(trail, "connect", libc::SYS_connect, socket, &unix_address(b"", &path))
}

/// `bind-path PATH`: makes a socket file.
fn bind_path(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = text(arguments, 0)?;
    let socket = open_socket(trail, "UNIX", "STREAM")?;
    with_address(trail, "bind", libc::SYS_bind, socket, &unix_address(b"", &path))
}

/// `connect-tcp PORT`
fn connect_tcp(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let port = number(arguments, 0)?;
    let socket = open_socket(trail, "INET", "STREAM")?;
    with_address(trail, "connect", libc::SYS_connect, socket, &loopback_address(port))
}

/// `send-udp PORT`: sending to nobody succeeds; a connected socket hears of it at the next call.
fn send_udp(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let port = number(arguments, 0)?;
    let socket = open_socket(trail, "INET", "DGRAM")?;
    with_address(trail, "connect", libc::SYS_connect, socket, &loopback_address(port))?;
    for call_name in ["first write", "second write"] {
        trail.step(call_name, crate::files::write(socket))?;
    }
    Ok(())
}
