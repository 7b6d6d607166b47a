//! The client's end of a warden: starting it, giving orders, hearing reports.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dsh_kernel::process::{Fork, fork};
use dsh_kernel::socket;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Shutdown, shutdown};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::error::SandboxError;
use crate::layers::{Applied, user_namespace};
use crate::plan::{CommandPlan, IdMap, WorldPlan};
use crate::protocol::{self, CommandId, Event, Order, Report};
use crate::{dispatch, warden};

/// How a warden comes into being. Never decided by the environment, nor by what lies next to a
/// binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WardenProgram {
    /// A fork of this process: for a small program with one thread, such as a command line.
    Fork,
    /// This program, which must call [`crate::dispatch()`] first thing in `main`. It is started by
    /// posix_spawn, whose cost does not grow with the caller's memory.
    Program(PathBuf),
}

impl WardenProgram {
    /// The running program itself, by /proc/self/exe, whatever has become of its file.
    #[must_use]
    pub fn current() -> Self {
        Self::Program(PathBuf::from(RUNNING))
    }

    /// The program that becomes the warden.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Fork => Path::new(RUNNING),
            Self::Program(path) => path,
        }
    }
}

/// The running program, whatever has become of its file.
const RUNNING: &str = "/proc/self/exe";

/// How long a warden may take to make its world.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running warden. Dropping it ends every command of it, and waits until it is gone.
#[derive(Debug)]
pub struct Warden {
    control: OwnedFd,
    process: Pid,
    /// A map that the warden will ask this process to write.
    map: Option<IdMap>,
    next: CommandId,
    layers: Vec<Applied>,
}

impl Warden {
    /// Starts a warden and has it make a world. Does not wait for that to be done.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when it cannot be started; [`SandboxError::Layer`] when the world
    /// cannot be made.
    pub fn start(program: &WardenProgram, world: &WorldPlan) -> Result<Self, SandboxError> {
        let (here, there) = socket::pair().map_err(SandboxError::warden("socketpair"))?;
        let process = match program {
            WardenProgram::Fork => {
                let forked = fork(CloneFlags::empty()).map_err(|errno| match errno {
                    Errno::EBUSY => SandboxError::Threads,
                    errno => SandboxError::warden("fork")(errno),
                })?;
                match forked {
                    Fork::Child => {
                        drop(here);
                        warden::run(there)
                    }
                    Fork::Parent { child, .. } => child,
                }
            }
            WardenProgram::Program(path) => spawn(path.into(), &there)?,
        };
        drop(there);
        let mut warden = Self {
            control: here,
            process,
            map: world.user_namespace.clone().filter(|map| matches!(map, IdMap::Whole { .. })),
            next: 0,
            layers: Vec::new(),
        };
        warden.order(&Order::Make(world.clone()), &[])?;
        Ok(warden)
    }

    /// Runs a command. News of it comes from [`Warden::next`].
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when the order cannot be given.
    pub fn run(
        &mut self,
        plan: &CommandPlan,
        stdio: [BorrowedFd<'_>; 3],
        script: Option<BorrowedFd<'_>>,
    ) -> Result<CommandId, SandboxError> {
        self.write_map()?;
        let packed = protocol::pack(plan).map_err(SandboxError::warden("pack the plan"))?;
        let id = self.next;
        self.next += 1;
        let [input, output, error] = stdio;
        let mut descriptors = vec![packed.as_fd(), input, output, error];
        descriptors.extend(script);
        self.order(&Order::Run(id), &descriptors)?;
        Ok(id)
    }

    /// Sends a signal to a command's process group.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when the order cannot be given.
    pub fn signal(&mut self, id: CommandId, signal: Signal) -> Result<(), SandboxError> {
        self.order(&Order::Signal(id, signal as i32), &[])
    }

    /// Ends everything that belongs to a command, at once.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when the order cannot be given.
    pub fn kill(&mut self, id: CommandId) -> Result<(), SandboxError> {
        self.order(&Order::Kill(id), &[])
    }

    /// The layers of the world, once it is made.
    #[must_use]
    pub fn layers(&self) -> &[Applied] {
        &self.layers
    }

    /// Waits for news of a command; none after `timeout`.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Layer`] when the world could not be made;
    /// [`SandboxError::RunnerFailed`] when the warden is gone.
    pub fn next(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<(CommandId, Event)>, SandboxError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        self.write_map()?;
        loop {
            if !self.wait_readable(deadline)? {
                return Ok(None);
            }
            match self.report()? {
                Report::Command(id, event) => return Ok(Some((id, event))),
                Report::World(layers) => self.layers = layers,
                Report::Failed(error) => return Err(error.into()),
                Report::WriteMap => return Err(SandboxError::RunnerFailed),
            }
        }
    }

    /// Writes the map that the warden waits for, if it does.
    fn write_map(&mut self) -> Result<(), SandboxError> {
        let Some(map) = self.map.take() else { return Ok(()) };
        if !self.wait_readable(Some(Instant::now() + PATIENCE))? {
            return Err(SandboxError::warden("make the world")(Errno::ETIMEDOUT));
        }
        match self.report()? {
            Report::WriteMap => {
                let written = user_namespace::map(self.process, &map);
                self.order(&Order::Mapped(written), &[])
            }
            Report::Failed(error) => Err(error.into()),
            Report::World(_) | Report::Command(..) => Err(SandboxError::RunnerFailed),
        }
    }

    /// Ends the warden itself, without waiting for a command that is past ending: one that waits
    /// in the kernel for a file server does not die before the server answers or goes away. The
    /// warden never does.
    pub(crate) fn abandon(self) {
        let _ = kill(self.process, Signal::SIGKILL);
    }

    fn order(&mut self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), SandboxError> {
        match protocol::send(self.control.as_fd(), order, descriptors) {
            // It ended: what it last said is still to be read, and tells more.
            Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
            Err(errno) => Err(SandboxError::warden("give an order")(errno)),
        }
    }

    fn report(&mut self) -> Result<Report, SandboxError> {
        let received = protocol::receive::<Report>(self.control.as_fd())
            .map_err(SandboxError::warden("hear a report"))?;
        received.map(|received| received.message).ok_or(SandboxError::RunnerFailed)
    }

    fn wait_readable(&self, deadline: Option<Instant>) -> Result<bool, SandboxError> {
        loop {
            let timeout = match deadline {
                None => PollTimeout::NONE,
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    // Rounded up, so that the last millisecond is not spent in a busy loop.
                    PollTimeout::try_from(left + Duration::from_micros(999))
                        .unwrap_or(PollTimeout::MAX)
                }
            };
            let mut ready = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, timeout) {
                Ok(0) if deadline.is_some_and(|deadline| deadline > Instant::now()) => {}
                Ok(count) => return Ok(count > 0),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(SandboxError::warden("poll")(errno)),
            }
        }
    }
}

impl AsFd for Warden {
    /// The control socket, readable when there is news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // The end of the connection is what ends the warden. The descriptor itself goes later.
        let _ = shutdown(self.control.as_raw_fd(), Shutdown::Both);
        while waitpid(self.process, None) == Err(Errno::EINTR) {}
    }
}

/// posix_spawn, with the control socket as standard input.
fn spawn(program: OsString, control: &OwnedFd) -> Result<Pid, SandboxError> {
    let failed = SandboxError::warden("spawn");
    let control = control.try_clone().map_err(|error| failed(crate::error::errno_of(&error)))?;
    let child = Command::new(program)
        .arg0(dispatch::ARGV0)
        .env_clear()
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(crate::error::errno_of(&error)))?;
    i32::try_from(child.id()).map(Pid::from_raw).map_err(|_| failed(Errno::EOVERFLOW))
}
