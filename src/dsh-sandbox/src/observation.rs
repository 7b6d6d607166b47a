//! The warden's end of an observer. It is started when the first call arrives: most commands cause
//! none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use dsh_facts::Layer;
use dsh_kernel::process::{Fork, fork};
use dsh_kernel::socket;
use nix::errno::Errno;
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
    observer: Option<Observer>,
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
        Ok(Self { plan, grants, ways_in, listener, counts, observer: None })
    }

    /// What to wait for: the first call, and then what the observer tells.
    pub(crate) fn waits_for(&self) -> BorrowedFd<'_> {
        self.observer.as_ref().map_or(self.listener.as_fd(), |observer| observer.reports.as_fd())
    }

    /// Whether there is an observer yet.
    pub(crate) fn is_served(&self) -> bool {
        self.observer.is_some()
    }

    /// The observer, where there is one.
    pub(crate) fn process(&self) -> Option<Pid> {
        self.observer.as_ref().map(|observer| observer.process)
    }

    /// Goes on once that is there. Returns what the observer told, if it did.
    ///
    /// # Errors
    ///
    /// There is no observer any more, or none can be started: the command must end, because nobody
    /// answers it.
    pub(crate) fn go_on(&mut self) -> Result<Option<Event>, Errno> {
        match &self.observer {
            None => {
                self.observer = Some(self.start()?);
                Ok(None)
            }
            Some(observer) => match protocol::receive::<Event>(observer.reports.as_fd())? {
                Some(received) => Ok(Some(received.message)),
                None => Err(Errno::EPIPE),
            },
        }
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

    /// Ends the observer of a command that has ended, and returns what it had still to tell.
    pub(crate) fn finish(self) -> Vec<Event> {
        let Some(observer) = self.observer else { return Vec::new() };
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
