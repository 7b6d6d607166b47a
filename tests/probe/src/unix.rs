//! Unix sockets as programs use them: somebody who listens, and somebody who connects.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept, bind, connect, getpeername,
    getsockopt, listen, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::args::{number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, CWD, NONE, call, words};
use crate::threads::Tally;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("unix-alarmed", unix_alarmed),
    ("unix-backlog", unix_backlog),
    ("unix-connect", unix_connect),
    ("unix-own", unix_own),
    ("unix-by-descriptor", unix_by_descriptor),
    ("unix-reconnect", unix_reconnect),
    ("unix-serve", unix_serve),
];

/// A socket of the type that the argument names, `NONBLOCK` or not as the next one says.
fn made(trail: &mut Trail, arguments: &[String], index: usize) -> Result<OwnedFd, Stop> {
    let kind = match text(arguments, index)?.as_str() {
        "STREAM" => SockType::Stream,
        "SEQPACKET" => SockType::SeqPacket,
        other => return Err(Stop::Misuse(format!("unknown type {other:?}"))),
    };
    let nonblocking = arguments.get(index + 1).is_some_and(|word| word == "NONBLOCK");
    let flags = if nonblocking { SockFlag::SOCK_NONBLOCK } else { SockFlag::empty() };
    trail.step("socket", socket(AddressFamily::Unix, kind, flags, None))
}

fn address(arguments: &[String], index: usize) -> Result<UnixAddr, Stop> {
    let name = text(arguments, index)?;
    let address = match name.strip_prefix('@') {
        Some(name) => UnixAddr::new_abstract(name.as_bytes()),
        None => UnixAddr::new(name.as_str()),
    };
    address.map_err(|errno| Stop::Misuse(format!("{name:?} is no address: {errno}")))
}

/// `unix-connect NAME TYPE [NONBLOCK]`: to somebody else; an abstract name begins with `@`.
fn unix_connect(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let name = address(arguments, 0)?;
    let socket = made(trail, arguments, 1)?;
    trail.step("connect", connect(socket.as_raw_fd(), &name))?;
    Ok(())
}

/// Somebody who listens, by a name, with as many waiting as `backlog` says.
fn listener(trail: &mut Trail, arguments: &[String], backlog: i32) -> Result<OwnedFd, Stop> {
    let name = address(arguments, 0)?;
    let kind: Vec<String> = arguments.iter().skip(2).take(1).cloned().collect();
    let socket = made(trail, &kind, 0)?;
    trail.step("bind", bind(socket.as_raw_fd(), &name))?;
    let backlog = Backlog::new(backlog).map_err(|errno| Stop::Misuse(errno.to_string()))?;
    trail.step("listen", listen(&socket, backlog))?;
    Ok(socket)
}

/// `unix-own BOUND CONNECTED TYPE [NONBLOCK]`: listens by one name and connects by another, sends a
/// byte each way, and says who the peer is to the listener and by which name the caller knows it.
fn unix_own(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let listening = listener(trail, arguments, 4)?;
    let here = made(trail, arguments, 2)?;
    let name = address(arguments, 1)?;
    trail.step("connect", connect(here.as_raw_fd(), &name))?;
    let there = trail.step("accept", accept(&listening))?;
    for (from, to) in [(&here, &there), (&there, &here)] {
        trail.step("write", crate::files::write(from.as_raw_fd().into()))?;
        let mut bytes = [0; 8];
        let arguments = vec![Arg::Int(to.as_raw_fd().into()), Arg::Out(&mut bytes), Arg::Int(8)];
        trail.step("read", call(libc::SYS_read, arguments))?;
    }
    let peer = trail.step("getsockopt", getsockopt(&there, sockopt::PeerCredentials))?;
    let known = trail.step("getpeername", getpeername::<UnixAddr>(here.as_raw_fd()))?;
    let known = known.path().map(|path| path.display().to_string()).unwrap_or_default();
    trail.detail(format!("uid {} gid {}, connected to {known}", peer.uid(), peer.gid()));
    Ok(())
}

/// `unix-by-descriptor PATH`: connects to the file itself, opened for its path alone.
fn unix_by_descriptor(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (file, flags) = (path(arguments, 0)?, Arg::Int(i64::from(libc::O_PATH)));
    let file = trail.step("openat", call(libc::SYS_openat, vec![CWD, Arg::Path(&file), flags]))?;
    let link = crate::descriptors::magic_link(file).to_string_lossy().into_owned();
    unix_connect(trail, &[link, "STREAM".to_owned()])
}

/// `unix-serve PATH TYPE`: accepts whoever comes, for ever; makes a file `PATH.ready` first.
fn unix_serve(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let name = text(arguments, 0)?;
    let listening = listener(trail, &[name.clone(), name.clone(), text(arguments, 1)?], 100)?;
    let ready = std::fs::write(format!("{name}.ready"), "ready\n");
    ready.map_err(|error| Stop::Misuse(format!("{name}.ready: {error}")))?;
    loop {
        trail.step("accept", accept(&listening))?;
    }
}

/// `unix-reconnect BOUND CONNECTED TYPE`: connects what is connected already.
fn unix_reconnect(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let _listening = listener(trail, arguments, 4)?;
    let here = made(trail, arguments, 2)?;
    let name = address(arguments, 1)?;
    trail.step("connect", connect(here.as_raw_fd(), &name))?;
    trail.step("connect again", connect(here.as_raw_fd(), &name))?;
    Ok(())
}

/// How many signals were handled.
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// Has SIGALRM counted.
pub(crate) fn handle_alarm(flags: SaFlags) -> Result<(), Stop> {
    let action = SigAction::new(SigHandler::Handler(count), flags, SigSet::empty());
    // SAFETY: the handler only adds to an atomic number, which is async-signal-safe.
    let handled = unsafe { sigaction(Signal::SIGALRM, &action) };
    handled.map(|_| ()).map_err(|errno| Stop::Misuse(format!("sigaction: {errno}")))
}

/// How many signals have been counted.
pub(crate) fn handled() -> u32 {
    HANDLED.load(Ordering::SeqCst)
}

/// Has the kernel send SIGALRM to this process after so many microseconds, and then as often.
pub(crate) fn alarm_after(first: u64, then: u64) -> Result<(), Stop> {
    let timer = words(&[0, then, 0, first]);
    let set = call(libc::SYS_setitimer, vec![NONE, Arg::In(&timer), NONE]);
    set.map(|_| ()).map_err(|errno| Stop::Misuse(format!("setitimer: {errno}")))
}

/// When the alarm comes, and when somebody accepts.
const SOON: Duration = Duration::from_millis(200);
/// No test waits as long.
const LONG: Duration = Duration::from_secs(20);

/// `unix-backlog NAME NAME TYPE HOW`: connects to a listener with no room for one more; then, by
/// HOW, once more without waiting (`nonblock`), for a limited time (`timeout`), until somebody
/// accepts (`wait`), until nobody listens any more (`closed`), or until an alarm comes whose handler
/// lets calls go on (`alarm-restart`), lets one of two calls fail (`alarm-two`), or lets the call
/// fail (`alarm`); or for ever (`for-ever`).
fn unix_backlog(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let listening = listener(trail, arguments, 0)?;
    let name = address(arguments, 1)?;
    let impatient = [text(arguments, 2)?, "NONBLOCK".to_owned()];
    let mut waiting = Vec::new();
    loop {
        let one = made(trail, &impatient, 0)?;
        match connect(one.as_raw_fd(), &name) {
            Ok(()) if waiting.len() < 100 => waiting.push(one),
            Ok(()) => return Err(Stop::Misuse("there is always room".to_owned())),
            Err(Errno::EAGAIN) => break,
            Err(errno) => return trail.step("connect", Err(errno)),
        }
    }
    let how = text(arguments, 3)?;
    if how == "nonblock" {
        return trail.step("connect", Err::<(), _>(Errno::EAGAIN));
    }
    let patient = made(trail, arguments, 2)?;
    let helper = match how.as_str() {
        "timeout" => {
            let time = TimeVal::milliseconds(200);
            trail.step("setsockopt", setsockopt(&patient, sockopt::SendTimeout, &time))?;
            None
        }
        "wait" => Some(accept_after(listening, || std::thread::sleep(SOON))),
        "closed" => Some(std::thread::spawn(move || {
            std::thread::sleep(SOON);
            drop(listening);
        })),
        "alarm" => {
            handle_alarm(SaFlags::empty())?;
            alarm_after(200_000, 0)?;
            None
        }
        "alarm-restart" => {
            handle_alarm(SaFlags::SA_RESTART)?;
            let helper = without_alarm(|| accept_after(listening, after_alarm));
            alarm_after(200_000, 0)?;
            Some(helper)
        }
        "alarm-two" => return two_of_them(trail, listening, &name, patient.as_fd()),
        "for-ever" => None,
        other => return Err(Stop::Misuse(format!("unknown way {other:?}"))),
    };
    let connected = connect(patient.as_raw_fd(), &name);
    trail.detail(format!("{} signals", handled()));
    trail.step("connect", connected)?;
    drop(helper);
    Ok(())
}

/// Accepts whoever waits, once that has happened.
fn accept_after(listening: OwnedFd, event: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        event();
        // Two make room for the one: what is accepted stays open.
        for _ in 0..2 {
            std::mem::forget(accept(&listening));
        }
        std::thread::sleep(LONG);
    })
}

/// Returns some time after the alarm was handled.
fn after_alarm() {
    while handled() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(SOON);
}

/// Starts a thread that alarms do not interrupt.
fn without_alarm<T>(start: impl FnOnce() -> T) -> T {
    let alarm = SigSet::from(Signal::SIGALRM);
    let _blocked = alarm.thread_block();
    let started = start();
    let _unblocked = alarm.thread_unblock();
    started
}

/// Two threads wait for room, and one alarm comes: one call fails, the other goes on.
fn two_of_them(
    trail: &mut Trail,
    listening: OwnedFd,
    name: &UnixAddr,
    patient: BorrowedFd<'_>,
) -> Outcome {
    handle_alarm(SaFlags::empty())?;
    let kind = trail.step("getsockopt", getsockopt(&patient, sockopt::SockType))?;
    let other = socket(AddressFamily::Unix, kind, SockFlag::empty(), None);
    let other = trail.step("socket", other)?;
    let name = *name;
    let second = std::thread::spawn(move || connect(other.as_raw_fd(), &name));
    let _helper = without_alarm(|| accept_after(listening, after_alarm));
    alarm_after(200_000, 0)?;
    let first = connect(patient.as_raw_fd(), &name);
    let second = second.join().unwrap_or(Err(Errno::UnknownErrno));
    let mut ends = [first, second].map(|end| match end {
        Ok(()) => "connected".to_owned(),
        Err(errno) => format!("{errno:?}"),
    });
    ends.sort();
    trail.detail(format!("{} signals, {}", handled(), ends.join(" and ")));
    Ok(())
}

/// `unix-alarmed NAME NAME TYPE TIMES HOW`: connects so often to somebody who is slow, while alarms
/// come; their handler lets calls go on (`restart`) or fail (`interrupt`).
fn unix_alarmed(trail: &mut Trail, arguments: &[String]) -> Outcome {
    const PERIOD: u64 = 3000;
    let listening = listener(trail, arguments, 0)?;
    let name = address(arguments, 1)?;
    let (times, restart) = (number(arguments, 3)?, text(arguments, 4)? == "restart");
    handle_alarm(if restart { SaFlags::SA_RESTART } else { SaFlags::empty() })?;
    let _helper = without_alarm(|| {
        std::thread::spawn(move || {
            // Now sooner, now later than anybody looks at who waits.
            for pause in (1..25).cycle() {
                std::thread::sleep(Duration::from_millis(pause));
                drop(accept(&listening));
            }
        })
    });
    alarm_after(PERIOD, PERIOD)?;
    let mut tally = Tally::default();
    for _ in 0..times {
        let one = made(trail, arguments, 2)?;
        let end = connect(one.as_raw_fd(), &name);
        // What has failed is not connected.
        let twofold = end.is_err() && getpeername::<UnixAddr>(one.as_raw_fd()).is_ok();
        tally.add(&if twofold { Err(Errno::EISCONN) } else { end });
    }
    alarm_after(0, 0)?;
    trail.detail(tally.text());
    Ok(())
}
