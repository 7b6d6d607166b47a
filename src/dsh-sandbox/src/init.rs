//! Init: pid 1 of a command's own namespaces. It applies the layers that the command and its
//! children share, starts the command, reaps, passes signals on, and says how the command ended.
//!
//! Without a pid namespace the same process is a child subreaper, and ends what is left by walking.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dsh_facts::{Layer, State};
use dsh_kernel::process::{Fork, exit_now, fork};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_name, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, stat, umask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, chdir};

use crate::command::become_command;
use crate::error::{LayerError, Step};
use crate::image;
use crate::layers::carve_outs::Masks;
use crate::layers::{Applied, capabilities, carve_outs, descriptors, enforce, mount, proc};
use crate::plan::{CommandPlan, Workdir};
use crate::protocol::{self, Event};
use crate::survivors;

/// What a command's init gets from the warden.
pub(crate) struct Inherited {
    pub(crate) plan: CommandPlan,
    /// The plan as it came.
    pub(crate) packed: OwnedFd,
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) script: Option<OwnedFd>,
    pub(crate) status: OwnedFd,
}

/// Runs the command to its end. Never returns.
pub(crate) fn run(inherited: Inherited) -> ! {
    let Inherited { plan, packed, mut stdio, script, status } = inherited;
    let _ = set_name(c"dsh-init");
    let outcome = match set_up(&plan, &mut stdio) {
        Ok(Around { layers, image, covered }) => match enter_workdir(&plan.workdir) {
            Ok(()) => {
                let command = start(&plan, &status, layers, || {
                    let (image, script) = (image.as_ref(), script.as_ref());
                    become_command(&plan, packed.as_fd(), image, &stdio, script, status.as_fd())
                });
                command.map(|command| (command, covered))
            }
            Err(errno) => Err(Event::WorkdirUnseen(errno as i32)),
        },
        Err(error) => Err(Event::Failed(error)),
    };
    drop((stdio, script, packed));
    match outcome {
        Err(event) => {
            let _ = protocol::send(status.as_fd(), &event, &[]);
        }
        Ok((command, covered)) => {
            let end = serve(&plan, command, status.as_fd());
            for place in covered.uncovered() {
                let _ = protocol::send(status.as_fd(), &Event::Uncovered(place), &[]);
            }
            if !plan.pid_namespace {
                survivors::kill_all(&[]);
            }
            let _ = protocol::send(status.as_fd(), &end, &[]);
        }
    }
    // As pid 1 this ends everything that is left in the namespace.
    exit_now(0)
}

/// What there is around the command.
struct Around {
    layers: Vec<Applied>,
    /// The image that becomes it.
    image: Option<OwnedFd>,
    /// The places that are hidden and protected.
    covered: carve_outs::Applied,
}

/// Applies the layers around the command.
fn set_up(plan: &CommandPlan, stdio: &mut [OwnedFd; 3]) -> Result<Around, LayerError> {
    let own = |errno: Errno, step| LayerError::new(Layer::PidNamespace, step, errno);
    if plan.pid_namespace {
        // Right below the warden, which has one thread; were it already dead, the status socket
        // says so.
        set_pdeathsig(Signal::SIGKILL).map_err(|errno| own(errno, "PR_SET_PDEATHSIG"))?;
    } else {
        set_child_subreaper(true).map_err(|errno| own(errno, "PR_SET_CHILD_SUBREAPER"))?;
    }
    let mut layers = Vec::new();
    let mut image = None;
    let mut masks = None;
    let mut covered = carve_outs::Applied::default();
    if plan.pid_namespace {
        layers.push(Applied::plainly(Layer::PidNamespace));
    }
    if let Some(mounts) = &plan.mounts {
        umask(Mode::empty());
        layers.push(enforce(Layer::Mount, || {
            let tree = mount::make_read_only(mounts, plan.stdio.terminal.as_ref())?;
            image = Some(image::open()?);
            descriptors::reopen_files(&plan.stdio, stdio)?;
            masks = Masks::make(&mounts.carve_outs)?;
            mount::add_own(tree, mounts)?;
            descriptors::reopen_devices(&plan.stdio, stdio)
        })?);
        layers.push(if plan.pid_namespace {
            enforce(Layer::Proc, || proc::mount_own(mounts.pid_max))?
        } else {
            // The host's /proc, with its processes: the read-only tree has it, and some of it goes.
            Applied { state: State::Partial, ..enforce(Layer::Proc, proc::mask)? }
        });
        // Last: a /proc of its own is refused where something covers a part of the one in sight.
        covered = carve_outs::apply(&mounts.carve_outs, masks.as_ref())?;
    } else {
        descriptors::reopen_files(&plan.stdio, stdio)?;
    }
    Ok(Around { layers, image, covered })
}

/// Enters the directory of the plan; `ESTALE` when another one has its name in here.
fn enter_workdir(workdir: &Workdir) -> Result<(), Errno> {
    match workdir {
        Workdir::Named(path) => chdir(Path::new(path)),
        Workdir::Same(root) => {
            chdir(root.path())?;
            let here = stat(".")?;
            if (here.st_dev, here.st_ino) == (root.device, root.inode) {
                Ok(())
            } else {
                Err(Errno::ESTALE)
            }
        }
    }
}

/// What an observer needs in order to see what the command sees: the root, the mount namespace and
/// the pid namespace. Nobody outside may ask for those of a process that cannot be dumped.
fn ways_in(plan: &CommandPlan) -> Result<Vec<OwnedFd>, LayerError> {
    let observed = plan.confinement.as_ref().is_some_and(|one| one.observer.is_some());
    let mut ways = Vec::new();
    let mut add = |path: &str, flags: OFlag| {
        let opened = open(path, flags | OFlag::O_CLOEXEC, Mode::empty());
        ways.push(opened.step(Layer::Observer, "open").map_err(|error| error.at(path))?);
        Ok(())
    };
    if observed && plan.mounts.is_some() {
        add("/", OFlag::O_PATH | OFlag::O_DIRECTORY)?;
        add("/proc/self/ns/mnt", OFlag::O_RDONLY)?;
        if plan.pid_namespace {
            add("/proc/self/ns/pid", OFlag::O_RDONLY)?;
        }
    }
    Ok(ways)
}

/// Forks the command, and puts itself out of its reach.
fn start(
    plan: &CommandPlan,
    status: &OwnedFd,
    layers: Vec<Applied>,
    become_command: impl FnOnce(),
) -> Result<Pid, Event> {
    let failed = |error: LayerError| Event::Failed(error);
    let own = |errno: Errno, step| Event::Failed(LayerError::new(Layer::PidNamespace, step, errno));
    let ways = ways_in(plan).map_err(failed)?;
    let passed: Vec<BorrowedFd<'_>> = ways.iter().map(AsFd::as_fd).collect();
    protocol::send(status.as_fd(), &Event::Prepared(layers), &passed)
        .map_err(|errno| own(errno, "report"))?;
    drop(ways);
    // Before the fork: no moment in which the command could trace init or read its memory.
    if let Some(confinement) = &plan.confinement {
        set_dumpable(false).map_err(|errno| own(errno, "PR_SET_DUMPABLE"))?;
        capabilities::keep_for_init(&confinement.capabilities).map_err(failed)?;
    }
    let forked = fork(CloneFlags::empty()).step(Layer::PidNamespace, "fork").map_err(failed)?;
    match forked {
        Fork::Child => {
            become_command();
            exit_now(0)
        }
        Fork::Parent { child, .. } => Ok(child),
    }
}

/// Reaps and passes signals on until the command has ended.
fn serve(plan: &CommandPlan, command: Pid, status: BorrowedFd<'_>) -> Event {
    // The warden blocked every signal before it forked us, so none is lost here.
    let children = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC);
    let Ok(children) = children else { return Event::Lost };
    if dsh_kernel::descriptors::close_all_but(&[status, children.as_fd()]).is_err() {
        return Event::Lost;
    }
    loop {
        while let Some(end) = reap(command, status) {
            match end {
                Reaped::Other => {}
                Reaped::Command(event) => return event,
            }
        }
        let mut ready = [
            PollFd::new(status, PollFlags::POLLIN),
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
        ];
        if poll(&mut ready, PollTimeout::NONE).is_err() {
            continue;
        }
        let [orders, ended] = ready.map(|one| one.any().unwrap_or(false));
        if ended {
            let _ = children.read_signal();
        }
        if orders {
            match protocol::receive::<i32>(status) {
                Ok(Some(order)) => deliver(command, order.message),
                // The warden is gone, and with it the reason to run.
                Ok(None) | Err(_) => {
                    if !plan.pid_namespace {
                        survivors::kill_all(&[]);
                    }
                    exit_now(0)
                }
            }
        }
    }
}

/// Sends a signal to the command's group; SIGCONT follows what a stopped group would sleep through.
fn deliver(command: Pid, signal: i32) {
    if let Ok(signal) = Signal::try_from(signal) {
        // The group may be gone already: its end is about to be reaped.
        let _ = killpg(command, signal);
    }
}

enum Reaped {
    Other,
    Command(Event),
}

/// Waits for one child without blocking; none when no child has news.
fn reap(command: Pid, status: BorrowedFd<'_>) -> Option<Reaped> {
    let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::__WALL;
    match waitpid(None, Some(flags)) {
        Ok(WaitStatus::StillAlive) | Err(_) => None,
        Ok(WaitStatus::Exited(pid, code)) if pid == command => {
            Some(Reaped::Command(Event::Exited(code)))
        }
        Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => {
            Some(Reaped::Command(Event::Killed(signal as i32)))
        }
        Ok(WaitStatus::Stopped(pid, signal)) if pid == command => {
            let _ = protocol::send(status, &Event::Stopped(signal as i32), &[]);
            Some(Reaped::Other)
        }
        Ok(_) => Some(Reaped::Other),
    }
}
