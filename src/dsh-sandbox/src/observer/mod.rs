//! The observer of one command: it serves the calls that the filter hands over.
//!
//! Three things are exact. A refused call gets its errno, and which call that is, is decided by its
//! registers, which nobody can change any more. A unix socket is reached only through a connection
//! that the observer made itself, to the file that it looked at. Metadata that it changes are those
//! of the file that it looked at.
//!
//! What it says of files is best effort: there the kernel decides, and reads the caller's memory
//! again when it does. A program with a second thread can make its own denials appear and vanish;
//! nothing that it prints can. Nor does every refusal pass here: reading what is hidden, signals,
//! and calls through descriptors below the level `all` are not watched.
//!
//! A signal that comes before the kernel has handed a call over interrupts it: no flag changes that
//! (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV` is about the time after). So a handler without
//! `SA_RESTART` can see `EINTR` where there is none outside.
//!
//! It lives in the command's mount namespace, so that paths mean what they mean to the command, and
//! outside its pid namespace, out of its reach.

mod attempt;
mod caller;
mod connect;
mod glance;
mod judge;
mod locate;
mod ownership;
mod perform;
mod record;
mod remedy;
mod view;
mod worker;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use dsh_facts::{Access, Layer};
use dsh_kernel::notification::{self, Notification};
use dsh_kernel::process::exit_now;
use dsh_kernel::{connection, descriptors, pidfd};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, chroot, fchdir, pause, setpgid};

use self::attempt::{Attempt, Base, Target, What, int};
use self::caller::{Caller, Identity, Numbers};
use self::connect::{ADDRESS_MAX, Connection, Destination};
use self::record::Record;
use self::view::View;
use self::worker::{Question, Reply, Task, Worker};
use crate::denied::Refused;
use crate::plan::{ObserverPlan, RefusedCall};
use crate::syscalls;

pub(crate) use record::{read_counts, shared_counts};

/// What an observer gets from the warden.
pub(crate) struct Inherited {
    pub(crate) plan: ObserverPlan,
    /// Where the calls arrive.
    pub(crate) listener: OwnedFd,
    /// The command's root, mount namespace and pid namespace, as far as it has its own.
    pub(crate) ways_in: Vec<OwnedFd>,
    /// Where denials are told.
    pub(crate) reports: OwnedFd,
    /// The file for their counts.
    pub(crate) counts: OwnedFd,
    /// Device and inode of what the caller handed over to be written.
    pub(crate) grants: Vec<(u64, u64)>,
}

/// Serves until it is killed. Never returns: one that cannot serve ends, and its command with it.
pub(crate) fn run(inherited: Inherited) -> ! {
    if let Ok(mut observer) = Observer::new(inherited) {
        let _ = observer.serve();
    }
    exit_now(0)
}

struct Observer {
    plan: ObserverPlan,
    refused: BTreeMap<u32, Vec<RefusedCall>>,
    /// Names of the calls, by number.
    names: Vec<&'static str>,
    listener: OwnedFd,
    pid_namespace: Option<OwnedFd>,
    view: Rc<View>,
    worker: Option<Worker>,
    record: Record,
}

impl Observer {
    fn new(inherited: Inherited) -> Result<Self, Errno> {
        let Inherited { plan, listener, ways_in, reports, counts, grants } = inherited;
        let _ = set_name(c"dsh-observer");
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        // Right below the warden, which has one thread.
        set_pdeathsig(Signal::SIGKILL)?;
        let mut kept: Vec<BorrowedFd<'_>> = ways_in.iter().map(AsFd::as_fd).collect();
        kept.extend([&listener, &reports, &counts].map(AsFd::as_fd));
        descriptors::close_all_but(&kept)?;
        let mut ways_in = ways_in.into_iter();
        let (root, mounts, pid_namespace) = (ways_in.next(), ways_in.next(), ways_in.next());
        if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
        }
        let directory = |path: &str| {
            open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        };
        let (host, proc) = (directory("/")?, directory("/proc")?);
        if plan.own_mounts {
            let (root, mounts) = root.zip(mounts).ok_or(Errno::EBADF)?;
            setns(&mounts, CloneFlags::CLONE_NEWNS)?;
            // Not that of the namespace, where the caller is in a chroot.
            fchdir(&root)?;
            chroot(".")?;
        }
        // Links to open files are named from here.
        fchdir(&proc)?;
        let _ = notification::wake_synchronously(listener.as_fd());
        let view = View::new(&plan, proc, host, &grants)?;
        let mut refused: BTreeMap<u32, Vec<RefusedCall>> = BTreeMap::new();
        for call in &plan.refused {
            refused.entry(call.number).or_default().push(call.clone());
        }
        Ok(Self {
            refused,
            names: syscalls::names(),
            listener,
            pid_namespace,
            view: Rc::new(view),
            worker: None,
            record: Record::new(counts, reports),
            plan,
        })
    }

    fn serve(&mut self) -> Result<(), Errno> {
        loop {
            match notification::receive(self.listener.as_fd()) {
                Ok(call) => self.answer(&call)?,
                // The caller went away, or a signal came between.
                Err(Errno::ENOENT | Errno::EINTR) => self.wait_for_end_if_alone(),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Once no process has the filter any more there is nothing left to do, and the warden ends us.
    fn wait_for_end_if_alone(&self) {
        let mut ready = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        let asked = poll(&mut ready, PollTimeout::ZERO);
        let alone = |flags: PollFlags| flags.contains(PollFlags::POLLHUP);
        if asked.is_ok() && ready[0].revents().is_some_and(alone) {
            pause();
        }
    }

    /// Answers one call. A caller that has gone is no error; a warden that has is.
    fn answer(&mut self, call: &Notification) -> Result<(), Errno> {
        let name = usize::try_from(call.number).ok().and_then(|number| self.names.get(number));
        let name = name.copied().unwrap_or_default();
        let refused = self
            .refused
            .get(&call.number)
            .and_then(|rules| rules.iter().find(|rule| rule.refuses(call.number, &call.arguments)));
        if let Some(refused) = refused {
            let (errno, privileged) = (refused.errno, refused.privileged);
            self.refuse(call, name, errno, privileged)?;
            return Ok(());
        }
        match name {
            "connect" => self.connect(call),
            "bind" => self.bind(call),
            _ => self.file(call, name),
        }
    }

    /// Answers with the errno, and records what the caller may do outside.
    fn refuse(
        &mut self,
        call: &Notification,
        name: &str,
        errno: i32,
        privileged: bool,
    ) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        if let Ok((identity, numbers)) = caller.status() {
            let outside = !privileged || (self.plan.administrator && identity.uid == 0);
            if outside && let Some(path) = self.refused_path(call, &caller, name) {
                let what = Refused {
                    operation: attempt::without_variant(name).to_owned(),
                    access: None,
                    path,
                    address: socket_kind(name, &call.arguments),
                    errno,
                    layer: Layer::Seccomp,
                };
                self.note(&caller, numbers, what)?;
            }
        }
        gone(notification::fail(self.listener.as_fd(), call.id, errno))
    }

    /// The file that a refused call is about, if it is about one; nothing where the call could not
    /// be made outside either, or nobody makes it any more.
    fn refused_path(
        &mut self,
        call: &Notification,
        caller: &Caller<'_>,
        name: &str,
    ) -> Option<Option<OsString>> {
        let waits = || notification::waits(self.listener.as_fd(), call.id);
        match Attempt::decode(name, &call.arguments, caller) {
            Err(_) => None,
            Ok(None) => waits().then_some(None),
            Ok(Some(attempt)) => match self.ask(call, caller, Task::Allow(attempt)) {
                Ok(Some((_, Reply::Denied { path, .. }, _))) => Some(Some(path)),
                _ => None,
            },
        }
    }

    /// A call that names a file.
    fn file(&mut self, call: &Notification, name: &str) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        let listener = self.listener.as_fd();
        let decoded = Attempt::decode(name, &call.arguments, &caller);
        let performs = self.plan.performs_metadata && attempt::is_change(name);
        let attempt = match decoded {
            Ok(Some(attempt)) => attempt,
            // Wrong for the kernel too, or unreadable: it will say so, or decide.
            _ if !performs => return gone(notification::go_on(listener, call.id)),
            Ok(None) => return gone(notification::fail(listener, call.id, libc::ENOENT)),
            Err(Errno::ESRCH) => return gone(notification::fail(listener, call.id, libc::EPERM)),
            Err(errno) => return gone(notification::fail(listener, call.id, errno as i32)),
        };
        if !performs && glance::is_free(&self.view, &caller, &attempt) {
            return gone(notification::go_on(listener, call.id));
        }
        let operation = attempt.what.operation();
        let task = if performs { Task::Perform(attempt) } else { Task::Judge(attempt) };
        let asked = self.ask(call, &caller, task);
        if let Ok(Some((numbers, Reply::Denied { errno, layer, path }, _))) = &asked {
            let what = Refused {
                operation: operation.to_owned(),
                access: Some(Access::Write),
                path: Some(path.clone()),
                address: None,
                errno: *errno,
                layer: *layer,
            };
            self.note(&caller, *numbers, what)?;
        }
        let listener = self.listener.as_fd();
        if !performs {
            return gone(notification::go_on(listener, call.id));
        }
        gone(match asked {
            Ok(Some((_, Reply::Done, _))) => notification::succeed(listener, call.id, 0),
            Ok(Some((_, Reply::Denied { errno, .. } | Reply::Failed(errno), _))) => {
                notification::fail(listener, call.id, errno)
            }
            _ => notification::fail(listener, call.id, libc::EPERM),
        })
    }

    /// A socket that wants a name in the file system.
    fn bind(&mut self, call: &Notification) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        let length = int(call.arguments[2]);
        let address = usize::try_from(length)
            .ok()
            .filter(|length| *length <= ADDRESS_MAX)
            .and_then(|length| caller.bytes(call.arguments[1], length).ok())
            .unwrap_or_default();
        // An address of another family says nothing about files, whatever the socket is.
        if let Destination::Path(path) = connect::destination(libc::AF_UNIX, &address) {
            let target = working_directory(path, false);
            let attempt = Attempt { what: What::Bind, target, second: None };
            if !glance::is_free(&self.view, &caller, &attempt)
                && let Ok(Some((numbers, Reply::Denied { errno, layer, path }, _))) =
                    self.ask(call, &caller, Task::Judge(attempt))
            {
                let what = Refused {
                    operation: "bind".to_owned(),
                    access: Some(Access::Write),
                    path: Some(path),
                    address: None,
                    errno,
                    layer,
                };
                self.note(&caller, numbers, what)?;
            }
        }
        gone(notification::go_on(self.listener.as_fd(), call.id))
    }

    fn connect(&mut self, call: &Notification) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        match self.try_connect(call, caller) {
            Ok(None) => Ok(()),
            Ok(Some(Outcome::GoOn)) => gone(notification::go_on(self.listener.as_fd(), call.id)),
            Ok(Some(Outcome::Done)) => {
                gone(notification::succeed(self.listener.as_fd(), call.id, 0))
            }
            Ok(Some(Outcome::Fails(errno))) => {
                gone(notification::fail(self.listener.as_fd(), call.id, errno as i32))
            }
            Err(warden_gone) => Err(warden_gone),
        }
    }

    /// Nothing where somebody else answers.
    fn try_connect(
        &mut self,
        call: &Notification,
        caller: Caller<'_>,
    ) -> Result<Option<Outcome>, Errno> {
        let fails = |errno: Errno| Ok(Some(Outcome::Fails(errno)));
        let [number, pointer, length, ..] = call.arguments;
        let length = match usize::try_from(int(length)) {
            Ok(length) if length <= ADDRESS_MAX => length,
            _ => return fails(Errno::EINVAL),
        };
        let Ok((identity, numbers)) = caller.status() else { return fails(Errno::EACCES) };
        let (thread, process) = (Pid::from_raw(call.thread), Pid::from_raw(numbers.process));
        let socket = pidfd::open_thread(thread, process)
            .and_then(|process| pidfd::copy_descriptor(process.as_fd(), int(number)));
        let socket = match socket {
            Ok(socket) => socket,
            Err(Errno::EBADF) => return fails(Errno::EBADF),
            Err(_) => return self.unreadable(call, &caller, numbers),
        };
        let domain = match connection::domain(socket.as_fd()) {
            Ok(domain) => domain,
            Err(errno) => return fails(errno),
        };
        let address = match caller.bytes(pointer, length) {
            Ok(address) => address,
            Err(Errno::EFAULT) => return fails(Errno::EFAULT),
            Err(_) => return self.unreadable(call, &caller, numbers),
        };
        if !notification::waits(self.listener.as_fd(), call.id) {
            return Ok(None);
        }
        let file = match connect::destination(domain, &address) {
            Destination::Path(path) => {
                let task = Task::Find(working_directory(path, true));
                match self.ask(call, &caller, task) {
                    Ok(Some((_, Reply::Found(_), file))) => file,
                    Ok(Some((_, Reply::Failed(errno), _))) => {
                        return fails(Errno::from_raw(errno));
                    }
                    Ok(Some((_, Reply::Denied { errno, layer, path }, _))) => {
                        let what = connection_refused(Some(path), None, errno, layer);
                        self.note(&caller, numbers, what)?;
                        return fails(Errno::from_raw(errno));
                    }
                    _ => return fails(Errno::EACCES),
                }
            }
            Destination::Abstract(name) if !self.plan.abstract_sockets => {
                let name = Some(format!("@{}", String::from_utf8_lossy(name)));
                let errno = Errno::EPERM;
                let what = connection_refused(None, name, errno as i32, Layer::Observer);
                self.note(&caller, numbers, what)?;
                return fails(errno);
            }
            Destination::Abstract(_) | Destination::Other => None,
        };
        if !self.plan.decides_sockets {
            return Ok(Some(Outcome::GoOn));
        }
        if domain != libc::AF_UNIX && connect::is_instant(socket.as_fd()) {
            return Ok(Some(match connection::connect(socket.as_fd(), &address) {
                Ok(()) => Outcome::Done,
                Err(errno) => Outcome::Fails(errno),
            }));
        }
        reap();
        let connection = Connection {
            listener: self.listener.as_fd(),
            id: call.id,
            caller,
            numbers,
            identity: &identity,
            pid_namespace: self.pid_namespace.as_ref().map(AsFd::as_fd),
            socket,
            address: &address,
            file,
        };
        match connection.start() {
            Ok(()) => Ok(None),
            Err(_) => fails(Errno::EACCES),
        }
    }

    /// A caller whose memory or descriptors we may not read connects to nothing.
    fn unreadable(
        &mut self,
        call: &Notification,
        caller: &Caller<'_>,
        numbers: Numbers,
    ) -> Result<Option<Outcome>, Errno> {
        if notification::waits(self.listener.as_fd(), call.id) {
            let address = Some("unreadable".to_owned());
            let errno = Errno::EACCES as i32;
            let what = connection_refused(None, address, errno, Layer::Observer);
            self.note(caller, numbers, what)?;
        }
        Ok(Some(Outcome::Fails(Errno::EACCES)))
    }

    /// Asks a worker with the caller's identity; nothing when the caller has gone, or when no worker
    /// could tell in time.
    fn ask(
        &mut self,
        call: &Notification,
        caller: &Caller<'_>,
        task: Task,
    ) -> Result<Option<(Numbers, Reply, Option<OwnedFd>)>, Errno> {
        let Ok((identity, numbers)) = caller.status() else { return Ok(None) };
        if !notification::waits(self.listener.as_fd(), call.id) {
            return Ok(None);
        }
        let question = Question { thread: call.thread, numbers, task };
        let worker = self.worker_for(&identity)?;
        match worker.ask(&question) {
            Ok((reply, file)) => Ok(Some((numbers, reply, file))),
            Err(_) => {
                self.worker = None;
                Ok(None)
            }
        }
    }

    fn worker_for(&mut self, identity: &Identity) -> Result<&Worker, Errno> {
        let worker = match self.worker.take() {
            Some(worker) if worker.is_for(identity) => worker,
            _ => Worker::start(identity, &self.view, &self.plan)?,
        };
        Ok(self.worker.insert(worker))
    }

    fn note(&mut self, caller: &Caller<'_>, numbers: Numbers, what: Refused) -> Result<(), Errno> {
        let plan = &self.plan;
        let leader = Caller { thread: numbers.process, ..*caller };
        self.record
            .add(what, |what| (leader.program(), numbers.process_inside, remedy::of(plan, what)))
    }
}

/// What becomes of a connect.
enum Outcome {
    GoOn,
    Done,
    Fails(Errno),
}

fn working_directory(path: &[u8], follow: bool) -> Target {
    Target { base: Base::WorkingDirectory, path: path.to_vec(), follow }
}

fn connection_refused(
    path: Option<OsString>,
    address: Option<String>,
    errno: i32,
    layer: Layer,
) -> Refused {
    Refused {
        operation: "connect".to_owned(),
        access: Some(Access::Connect),
        path,
        address,
        errno,
        layer,
    }
}

/// An answer that nobody waits for any more is none that failed.
fn gone(answered: Result<(), Errno>) -> Result<(), Errno> {
    match answered {
        Err(Errno::ENOENT | Errno::EINPROGRESS) => Ok(()),
        other => other,
    }
}

/// Takes note of processes that have ended.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
    }
}

/// Family and type of a socket that was refused, for people.
fn socket_kind(name: &str, arguments: &[u64; 6]) -> Option<String> {
    if !matches!(name, "socket" | "socketpair") {
        return None;
    }
    let family = match int(arguments[0]) {
        libc::AF_UNIX => "unix".to_owned(),
        libc::AF_INET => "inet".to_owned(),
        libc::AF_INET6 => "inet6".to_owned(),
        libc::AF_NETLINK => "netlink".to_owned(),
        libc::AF_PACKET => "packet".to_owned(),
        libc::AF_VSOCK => "vsock".to_owned(),
        libc::AF_ALG => "alg".to_owned(),
        other => format!("family {other}"),
    };
    let kind = match int(arguments[1]) & 0xf {
        libc::SOCK_STREAM => "stream".to_owned(),
        libc::SOCK_DGRAM => "datagram".to_owned(),
        libc::SOCK_RAW => "raw".to_owned(),
        libc::SOCK_SEQPACKET => "seqpacket".to_owned(),
        other => format!("type {other}"),
    };
    let protocol = match (int(arguments[0]), int(arguments[2])) {
        (_, 0) => String::new(),
        (_, protocol) => format!(" protocol {protocol}"),
    };
    Some(format!("{family} {kind}{protocol}"))
}
