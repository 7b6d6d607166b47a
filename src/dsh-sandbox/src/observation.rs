//! The warden's end of an observer. It is started when the first call arrives: most commands cause
//! none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use dsh_facts::Layer;
use dsh_kernel::process::{Fork, fork};
use dsh_kernel::socket;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setpgid};

use crate::error::{LayerError, Step};
use crate::observer::{self, Inherited};
use crate::plan::ObserverPlan;
use crate::protocol::{self, Event};

/// The observation of one command.
pub(crate) struct Observation {
    plan: ObserverPlan,
    grants: Vec<(u64, u64)>,
    /// The command's root and namespaces.
    ways_in: Vec<OwnedFd>,
    /// Where calls arrive. Kept for as long as the command runs: without a holder every call would
    /// be answered as on a kernel that lacks it.
    listener: OwnedFd,
    counts: OwnedFd,
    state: State,
}

enum State {
    /// No call has arrived yet.
    Idle,
    Served(Observer),
    /// Nobody answers any more: the command is being ended.
    Failed,
}

/// A running observer.
struct Observer {
    process: Pid,
    reports: OwnedFd,
}

impl Observation {
    /// Begins to watch a listener.
    ///
    /// # Errors
    ///
    /// That of making the file for the counts.
    pub(crate) fn new(
        plan: ObserverPlan,
        grants: Vec<(u64, u64)>,
        ways_in: Vec<OwnedFd>,
        listener: OwnedFd,
    ) -> Result<Self, LayerError> {
        let counts = observer::shared_counts().step(Layer::Observer, "memfd_create")?;
        Ok(Self { plan, grants, ways_in, listener, counts, state: State::Idle })
    }

    /// What to wait for, and the news that count: the first call, and then what the observer tells.
    /// A listener whose processes are all gone is no news (`POLLHUP`); init tells of the end.
    pub(crate) fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            State::Idle => Some((self.listener.as_fd(), PollFlags::POLLIN)),
            State::Served(observer) => Some((observer.reports.as_fd(), PollFlags::all())),
            State::Failed => None,
        }
    }

    /// The observer, where there is one.
    pub(crate) fn process(&self) -> Option<Pid> {
        match &self.state {
            State::Served(observer) => Some(observer.process),
            State::Idle | State::Failed => None,
        }
    }

    /// Goes on once that is there. Returns what the observer told, if it did.
    ///
    /// # Errors
    ///
    /// There is no observer any more, or none can be started: the command must end, because nobody
    /// answers it.
    pub(crate) fn go_on(&mut self) -> Result<Option<Event>, LayerError> {
        let told = match &self.state {
            State::Idle => match self.start() {
                Ok(observer) => {
                    self.state = State::Served(observer);
                    return Ok(None);
                }
                Err(errno) => Err(LayerError::new(Layer::Observer, "start", errno)),
            },
            State::Served(observer) => match protocol::receive::<Event>(observer.reports.as_fd()) {
                Ok(Some(received)) => return Ok(Some(received.message)),
                Ok(None) => Err(LayerError::new(Layer::Observer, "serve", Errno::EPIPE)),
                Err(errno) => Err(LayerError::new(Layer::Observer, "receive", errno)),
            },
            State::Failed => return Ok(None),
        };
        // The listener stays open until the command is gone: its calls wait, and fail with it.
        if let State::Served(observer) = std::mem::replace(&mut self.state, State::Failed) {
            end_group(observer.process);
        }
        told
    }

    fn start(&self) -> Result<Observer, Errno> {
        let copy = |descriptor: &OwnedFd| {
            descriptor.try_clone().map_err(|error| crate::error::errno_of(&error))
        };
        let (here, there) = socket::pair()?;
        let inherited = Inherited {
            plan: self.plan.clone(),
            listener: copy(&self.listener)?,
            ways_in: self.ways_in.iter().map(copy).collect::<Result<_, _>>()?,
            reports: there,
            counts: copy(&self.counts)?,
            grants: self.grants.clone(),
        };
        match fork(CloneFlags::empty())? {
            Fork::Child => {
                std::mem::forget(here); // closed with the rest
                observer::run(inherited)
            }
            Fork::Parent { child, .. } => {
                // Its own process group, by which all that it starts is found. It does the same.
                let _ = setpgid(child, child);
                Ok(Observer { process: child, reports: here })
            }
        }
    }

    /// Ends the observer of a command that has ended, and returns what it had still to tell. What is
    /// left of the command waits for answers until this is dropped: without a listener it would be
    /// told that there are no such calls.
    pub(crate) fn end(&mut self) -> Vec<Event> {
        let State::Served(observer) = std::mem::replace(&mut self.state, State::Failed) else {
            return Vec::new();
        };
        end_group(observer.process);
        let mut events = Vec::new();
        while let Ok(Some(received)) = protocol::receive::<Event>(observer.reports.as_fd()) {
            events.push(received.message);
        }
        let (counts, dropped) = observer::read_counts(&self.counts);
        if !counts.is_empty() {
            events.push(Event::DenialCounts(counts, dropped));
        }
        events
    }
}

/// How long the processes of an observer may take to go. They die of SIGKILL at once, unless one of
/// them waits in the kernel for a file system that cannot be interrupted.
const PATIENCE: Duration = Duration::from_secs(2);

/// Ends an observer and all that it started: orphans come to the warden, which waits for them.
fn end_group(observer: Pid) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let _ = killpg(observer, Signal::SIGKILL);
        let group = Pid::from_raw(-observer.as_raw());
        match waitpid(group, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_micros(200)),
            Ok(_) => {}
            // None is left, or none is ours yet.
            Err(_) if killpg(observer, None).is_err() => return,
            Err(_) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}
