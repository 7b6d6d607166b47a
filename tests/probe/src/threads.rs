//! What an observer of calls could mistake: many threads, threads that are not like their process,
//! and signals around calls.

use std::ffi::CString;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SaFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getpeername, socket};

use crate::args::{number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, CWD, NONE, call};
use crate::unix::{alarm_after, handle_alarm, handled};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("alarmed", alarmed),
    ("create-all", create_all),
    ("fill-descriptors", fill_descriptors),
    ("leader-gone", leader_gone),
    ("other-descriptors", other_descriptors),
    ("threads", threads),
];

/// Makes a file, or finds that it cannot.
fn create(path: &CString) -> Result<(), Errno> {
    let flags = i64::from(libc::O_WRONLY | libc::O_CREAT);
    let opened =
        call(libc::SYS_openat, vec![CWD, Arg::Path(path), Arg::Int(flags), Arg::Int(0o600)])?;
    call(libc::SYS_close, vec![Arg::Int(opened)]).map(|_| ())
}

/// What came of something done often, such as `3 EROFS, 7 ok`.
#[derive(Default)]
pub(crate) struct Tally(std::collections::BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add<T>(&mut self, result: &Result<T, Errno>) {
        let name = match result {
            Ok(_) => "ok".to_owned(),
            Err(errno) => format!("{errno:?}"),
        };
        *self.0.entry(name).or_default() += 1;
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        for (name, count) in other.0 {
            *self.0.entry(name).or_default() += count;
        }
        self
    }

    pub(crate) fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        parts.join(", ")
    }
}

fn numbered(stem: &str, number: i64) -> Result<CString, Stop> {
    CString::new(format!("{stem}{number}")).map_err(|_| Stop::Misuse("NUL byte".to_owned()))
}

/// `create-all STEM COUNT TIMES`: files of that many different names, each so often.
fn create_all(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (stem, count, times) = (text(arguments, 0)?, number(arguments, 1)?, number(arguments, 2)?);
    let mut tally = Tally::default();
    for _ in 0..times {
        for one in 0..count {
            tally.add(&create(&numbered(&stem, one)?));
        }
    }
    trail.detail(tally.text());
    Ok(())
}

/// `threads COUNT TIMES PATH`: as many threads make the same file, each so often.
fn threads(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (count, times, path) = (number(arguments, 0)?, number(arguments, 1)?, path(arguments, 2)?);
    let work = || {
        let mut tally = Tally::default();
        for _ in 0..times {
            tally.add(&create(&path));
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let all: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        all.into_iter().filter_map(|one| one.join().ok()).fold(Tally::default(), Tally::merge)
    });
    trail.detail(tally.text());
    Ok(())
}

/// `leader-gone PATH SOCKET`: the first thread ends, and another makes a file and connects.
fn leader_gone(_: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, name) = (path(arguments, 0)?, text(arguments, 1)?);
    let address = UnixAddr::new(name.as_str())
        .map_err(|errno| Stop::Misuse(format!("{name:?} is no address: {errno}")))?;
    let leader = std::process::id();
    std::thread::spawn(move || {
        while !ended(leader) {
            std::thread::yield_now();
        }
        let mut trail = Trail::new("leader-gone");
        let created = create(&path);
        let mut tally = Tally::default();
        tally.add(&created);
        let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None);
        let connected = socket.and_then(|socket| connect(socket.as_raw_fd(), &address));
        trail.detail(format!("{}, {connected:?}", tally.text()));
        println!("{}", trail.into_json());
        std::process::exit(0);
    });
    let _never = call(libc::SYS_exit, vec![NONE]);
    Ok(())
}

/// Whether the first thread of this process has ended: it stays as a zombie.
fn ended(leader: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{leader}/stat"));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// `other-descriptors SOCKET`: a thread with a table of its own connects a socket that in the
/// process's table is another.
fn other_descriptors(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let name = text(arguments, 0)?;
    let address = UnixAddr::new(name.as_str())
        .map_err(|errno| Stop::Misuse(format!("{name:?} is no address: {errno}")))?;
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None);
    let shared = trail.step("socket", made)?;
    let number = shared.as_raw_fd();
    let own = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_FILES)?;
        let own = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
        let arguments = vec![Arg::Int(own.as_raw_fd().into()), Arg::Int(number.into()), NONE];
        call(libc::SYS_dup3, arguments)?;
        connect(number, &address)?;
        getpeername::<UnixAddr>(number).map(|_| ())
    });
    trail.step("connect", own.join().unwrap_or(Err(Errno::UnknownErrno)))?;
    trail.detail(format!("{:?}", getpeername::<UnixAddr>(number).map(|_| ())));
    Ok(())
}

/// `fill-descriptors PATH SOCKET`: with a full table makes a file, a directory, and connects.
fn fill_descriptors(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (file, name) = (path(arguments, 0)?, text(arguments, 1)?);
    let directory = numbered(&text(arguments, 0)?, 1)?;
    let address = UnixAddr::new(name.as_str())
        .map_err(|errno| Stop::Misuse(format!("{name:?} is no address: {errno}")))?;
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None);
    let socket = trail.step("socket", made)?;
    let null = Arg::Path(c"/dev/null");
    let mut filled = call(libc::SYS_openat, vec![CWD, null, NONE]);
    while filled.is_ok() {
        filled = call(libc::SYS_openat, vec![CWD, Arg::Path(c"/dev/null"), NONE]);
    }
    let made = call(libc::SYS_mkdirat, vec![CWD, Arg::Path(&directory), Arg::Int(0o700)]);
    let connected = connect(socket.as_raw_fd(), &address);
    let ends = [filled.map(|_| ()), create(&file), made.map(|_| ()), connected];
    let names = ends.map(|end| end.err().map_or("ok".to_owned(), |errno| format!("{errno:?}")));
    trail.detail(names.join(", "));
    Ok(())
}

/// `alarmed PATH TIMES HOW`: makes a file so often while an alarm comes each millisecond, whose
/// handler lets calls go on (`restart`) or lets those that wait fail (`interrupt`).
fn alarmed(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (path, times) = (path(arguments, 0)?, number(arguments, 1)?);
    let restart = text(arguments, 2)? == "restart";
    handle_alarm(if restart { SaFlags::SA_RESTART } else { SaFlags::empty() })?;
    alarm_after(1000, 1000)?;
    let mut tally = Tally::default();
    for _ in 0..times {
        tally.add(&create(&path));
    }
    alarm_after(0, 0)?;
    trail.detail(format!("{}; {} alarms", tally.text(), handled()));
    Ok(())
}
