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
mod files;
mod glance;
mod judge;
mod locate;
mod names;
mod ownership;
mod perform;
mod record;
mod refused_calls;
mod remedy;
mod sockets;
mod view;
mod worker;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use dsh_kernel::descriptors;
use dsh_kernel::notification::{self, Notification};
use dsh_kernel::process::exit_now;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_name;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chroot, fchdir, setpgid};

use self::caller::{Caller, Identity, Numbers};
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

    /// Serves until no process has the filter any more, and then until the warden ends us. Should the
    /// warden be killed, so is the command, whose last calls are answered still: without a listener
    /// they would be told that there is no such call.
    fn serve(&mut self) -> Result<(), Errno> {
        let mut warden = true;
        loop {
            let mut watched = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            if warden {
                watched.push(PollFd::new(self.record.reports(), PollFlags::empty()));
            }
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            let news = |one: &PollFd<'_>| one.revents().unwrap_or(PollFlags::empty());
            let calls = news(&watched[0]);
            warden &= watched.get(1).is_some_and(|reports| news(reports).is_empty());
            if calls.contains(PollFlags::POLLIN) {
                match notification::receive(self.listener.as_fd()) {
                    Ok(call) => self.answer(&call)?,
                    // The caller went away, or a signal came between.
                    Err(Errno::ENOENT | Errno::EINTR) => {}
                    Err(errno) => return Err(errno),
                }
            } else if calls.contains(PollFlags::POLLHUP) {
                if warden {
                    let mut reports = [PollFd::new(self.record.reports(), PollFlags::empty())];
                    let _ = poll(&mut reports, PollTimeout::NONE);
                }
                return Ok(());
            }
        }
    }

    /// Answers one call. That its caller has gone is no error.
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

/// An answer that nobody waits for any more is none that failed.
fn gone(answered: Result<(), Errno>) -> Result<(), Errno> {
    match answered {
        Err(Errno::ENOENT | Errno::EINPROGRESS) => Ok(()),
        other => other,
    }
}
