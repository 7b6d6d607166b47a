//! Arguments that a second thread rewrites between the moment at which somebody checks them and the
//! moment at which the kernel uses them.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::args::{number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, CWD, NONE, call};
use crate::threads::Tally;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("race-address", race_address),
    ("race-chmod", race_chmod),
    ("race-directory", race_directory),
    ("race-link", race_link),
    ("race-open", race_open),
    ("race-socket", race_socket),
];

/// Bytes that two threads share.
struct Shared(Vec<AtomicU8>);

impl Shared {
    fn new(bytes: &[u8]) -> Self {
        Self(bytes.iter().copied().map(AtomicU8::new).collect())
    }

    fn pointer(&self) -> Arg<'_> {
        Arg::Int((self.0.as_ptr().expose_provenance() as u64).cast_signed())
    }

    fn length(&self) -> Arg<'_> {
        Arg::Int(i64::try_from(self.0.len()).unwrap_or_default())
    }
}

/// Works so often, while a second thread does something again and again.
fn beside(meanwhile: impl Fn() + Sync, times: i64, mut work: impl FnMut(&mut Tally)) -> Tally {
    let (done, mut tally) = (AtomicBool::new(false), Tally::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                meanwhile();
            }
        });
        for _ in 0..times {
            work(&mut tally);
        }
        done.store(true, Ordering::Relaxed);
    });
    tally
}

/// The same, while the bytes are now these, now those.
fn while_rewritten(
    bytes: &Shared,
    one: &[u8],
    other: &[u8],
    times: i64,
    mut work: impl FnMut() -> Result<(), Errno>,
) -> Result<Tally, Stop> {
    if one.len() != other.len() {
        return Err(Stop::Misuse("not of the same length".to_owned()));
    }
    let flip = || {
        for text in [one, other] {
            for (place, byte) in bytes.0.iter().zip(text) {
                place.store(*byte, Ordering::Relaxed);
            }
            std::hint::spin_loop();
        }
    };
    Ok(beside(flip, times, |tally| tally.add(&work())))
}

/// Writes to a file by a name that is rewritten.
fn write(name: Arg<'_>) -> Result<(), Errno> {
    let flags = i64::from(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
    let opened = call(libc::SYS_openat, vec![CWD, name, Arg::Int(flags), Arg::Int(0o600)])?;
    let written = crate::files::write(opened);
    call(libc::SYS_close, vec![Arg::Int(opened)])?;
    written.map(|_| ())
}

/// `race-open PATH PATH TIMES`: writes to the one or the other.
fn race_open(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (one, other) = (path(arguments, 0)?, path(arguments, 1)?);
    let name = Shared::new(one.as_bytes_with_nul());
    let (one, other, times) =
        (one.as_bytes_with_nul(), other.as_bytes_with_nul(), number(arguments, 2)?);
    let tally = while_rewritten(&name, one, other, times, || write(name.pointer()))?;
    trail.detail(tally.text());
    Ok(())
}

/// `race-chmod PATH PATH TIMES`: the mode of the one or the other.
fn race_chmod(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (one, other) = (path(arguments, 0)?, path(arguments, 1)?);
    let name = Shared::new(one.as_bytes_with_nul());
    let (one, other, times) =
        (one.as_bytes_with_nul(), other.as_bytes_with_nul(), number(arguments, 2)?);
    let tally = while_rewritten(&name, one, other, times, || {
        call(libc::SYS_fchmodat, vec![CWD, name.pointer(), Arg::Int(0o777)]).map(|_| ())
    })?;
    trail.detail(tally.text());
    Ok(())
}

/// Lets two names change places.
fn swap(one: &CString, other: &CString) {
    const EXCHANGE: i64 = 2;
    let names = vec![CWD, Arg::Path(one), CWD, Arg::Path(other), Arg::Int(EXCHANGE)];
    let _swapped = call(libc::SYS_renameat2, names);
}

/// `race-link LINK LINK TIMES`: connects by the first, while the two change places.
fn race_link(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (link, other) = (path(arguments, 0)?, path(arguments, 1)?);
    let address = unix_address(libc::AF_UNIX, &text(arguments, 0)?);
    let length = i64::try_from(address.len()).unwrap_or_default();
    let tally = beside(
        || swap(&link, &other),
        number(arguments, 2)?,
        |tally| {
            let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None);
            tally.add(&made.and_then(|socket| {
                let number = Arg::Int(socket.as_raw_fd().into());
                call(libc::SYS_connect, vec![number, Arg::In(&address), Arg::Int(length)])
            }));
        },
    );
    trail.detail(tally.text());
    Ok(())
}

/// `race-directory DIR LINK NAME TIMES`: the mode and the content of `DIR/NAME`, while the directory
/// and a symbolic link change places.
fn race_directory(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (directory, link) = (path(arguments, 0)?, path(arguments, 1)?);
    let name = format!("{}/{}", text(arguments, 0)?, text(arguments, 2)?);
    let name = CString::new(name).map_err(|error| Stop::Misuse(error.to_string()))?;
    let tally = beside(
        || swap(&directory, &link),
        number(arguments, 3)?,
        |tally| {
            tally.add(&call(libc::SYS_fchmodat, vec![CWD, Arg::Path(&name), Arg::Int(0o777)]));
            tally.add(&write(Arg::Path(&name)));
        },
    );
    trail.detail(tally.text());
    Ok(())
}

/// `sockaddr_un` of a path.
fn unix_address(family: i32, name: &str) -> Vec<u8> {
    let family = u16::try_from(family).unwrap_or_default();
    [&family.to_ne_bytes()[..], name.as_bytes(), b"\0"].concat()
}

/// `race-address FAMILY NAME FAMILY NAME TIMES`: connects a unix socket to the one or the other.
fn race_address(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let address = |index| -> Result<Vec<u8>, Stop> {
        let family = match text(arguments, index)?.as_str() {
            "UNIX" => libc::AF_UNIX,
            "INET" => libc::AF_INET,
            other => return Err(Stop::Misuse(format!("unknown family {other:?}"))),
        };
        Ok(unix_address(family, &text(arguments, index + 1)?))
    };
    let (one, other) = (address(0)?, address(2)?);
    let shared = Shared::new(&one);
    let tally = while_rewritten(&shared, &one, &other, number(arguments, 4)?, || {
        let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
        let number = Arg::Int(socket.as_raw_fd().into());
        call(libc::SYS_connect, vec![number, shared.pointer(), shared.length()]).map(|_| ())
    })?;
    trail.detail(tally.text());
    Ok(())
}

/// `race-socket NAME TIMES`: connects a descriptor to a unix socket, while it is now a unix socket,
/// now one of the internet.
fn race_socket(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (name, times) = (text(arguments, 0)?, number(arguments, 1)?);
    let mut new =
        |family| trail.step("socket", socket(family, SockType::Stream, SockFlag::empty(), None));
    let [unix, inet, target] =
        [new(AddressFamily::Unix)?, new(AddressFamily::Inet)?, new(AddressFamily::Inet)?];
    let become_other = |socket: i32| {
        let numbers = vec![Arg::Int(socket.into()), Arg::Int(target.as_raw_fd().into()), NONE];
        let _replaced = call(libc::SYS_dup3, numbers);
    };
    let flip = || {
        become_other(unix.as_raw_fd());
        become_other(inet.as_raw_fd());
    };
    let address = unix_address(libc::AF_UNIX, &name);
    let length = i64::try_from(address.len()).unwrap_or_default();
    let tally = beside(flip, times, |tally| {
        let number = Arg::Int(target.as_raw_fd().into());
        tally.add(&call(libc::SYS_connect, vec![number, Arg::In(&address), Arg::Int(length)]));
    });
    trail.detail(tally.text());
    Ok(())
}
