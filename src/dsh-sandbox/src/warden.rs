//! The warden: a small process with one thread that makes a world once and then starts commands in
//! it. It executes plans and decides nothing.
//!
//! It stays in the caller's mount namespace, so that each command sees the host as it is now. It
//! ends, and takes every command with it, when the control socket closes or its parent dies: a
//! forked child of the parent can hold the socket open.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use caps::Capability;
use dsh_facts::Layer;
use dsh_kernel::process::{Fork, exit_now, fork};
use dsh_kernel::{descriptors, pidfd, socket};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_name};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::fstat;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, getppid, setpgid};

use crate::error::{LayerError, Step};
use crate::init::{self, Inherited};
use crate::layers::{Applied, capabilities, enforce, namespace_lock, network, user_namespace};
use crate::observation::Observation;
use crate::plan::{CommandPlan, IdMap, ObserverPlan, ROOT_KEEPS, WorldPlan};
use crate::protocol::{self, CommandId, Event, Order, Report};
use crate::pump;
use crate::stdio::Stdio;
use crate::survivors;

/// Serves orders from `control` until it closes. Never returns.
pub(crate) fn run(control: OwnedFd) -> ! {
    // An error here has nobody to be told to: the client sees the socket close.
    let _ = serve(&control);
    exit_now(0)
}

fn serve(control: &OwnedFd) -> Result<(), Errno> {
    let prepared = prepare(control.as_fd());
    let Some(first) = protocol::receive::<Order>(control.as_fd())? else { return Ok(()) };
    let Order::Make(world) = first.message else { return Err(Errno::EPROTO) };
    let made = prepared.and_then(|parent| {
        let layers = make_world(&world, control.as_fd())?;
        Ok((parent, layers))
    });
    let (parent, layers) = match made {
        Ok(made) => made,
        Err(error) => return protocol::send(control.as_fd(), &Report::Failed(error), &[]),
    };
    protocol::send(control.as_fd(), &Report::World(layers), &[])?;
    // From here on nothing of /proc/self is needed, and a warden knows the caller's environment.
    set_dumpable(false)?;
    let mut commands = Commands::new();
    let result = commands.serve(control.as_fd(), parent.as_fd());
    commands.kill_all();
    result
}

/// Makes a process of its own out of a fork of the client: nothing is left of the client's
/// descriptors and signals. Returns the parent's pidfd.
fn prepare(control: BorrowedFd<'_>) -> Result<OwnedFd, LayerError> {
    let own = |errno: Errno, step| LayerError::new(Layer::PidNamespace, step, errno);
    set_name(c"dsh-warden").map_err(|errno| own(errno, "PR_SET_NAME"))?;
    // Of a program that its caller may execute and not read, the files in /proc are root's, and no
    // map could be written. Once the world is made they are root's again.
    set_dumpable(true).map_err(|errno| own(errno, "PR_SET_DUMPABLE"))?;
    let parent = pidfd::open(getppid()).map_err(|errno| own(errno, "pidfd_open"))?;
    descriptors::close_all_but(&[control, parent.as_fd()])
        .step(Layer::Descriptors, "close_range")?;
    // What a command gets comes with its order; the warden holds nobody's pipe open.
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .step(Layer::Descriptors, "open")
        .map_err(|error| error.at("/dev/null"))?;
    dup2_stdin(&null)
        .and_then(|()| dup2_stdout(&null))
        .and_then(|()| dup2_stderr(&null))
        .step(Layer::Descriptors, "dup2")?;
    // A client that ignores SIGCHLD would have every child here reaped unseen. Blocked, because a
    // key in the caller's terminal is for the command; init inherits that for its signalfd.
    dsh_kernel::signals::reset()
        .and_then(|()| sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None))
        .map_err(|errno| own(errno, "reset signals"))?;
    match setpgid(Pid::from_raw(0), Pid::from_raw(0)) {
        // A session leader is a group leader already.
        Ok(()) | Err(Errno::EPERM) => {}
        Err(errno) => return Err(own(errno, "setpgid")),
    }
    set_child_subreaper(true).map_err(|errno| own(errno, "PR_SET_CHILD_SUBREAPER"))?;
    Ok(parent)
}

/// Enters the world's namespaces and sets them up.
fn make_world(plan: &WorldPlan, control: BorrowedFd<'_>) -> Result<Vec<Applied>, LayerError> {
    let mut layers = Vec::new();
    let entered = enforce(Layer::UserNamespace, || {
        user_namespace::enter(plan, || map_from_outside(control))
    })?;
    if plan.user_namespace.is_some() {
        layers.push(entered);
    }
    if plan.ipc_namespace {
        layers.push(Applied::plainly(Layer::IpcNamespace));
    }
    if let Some(private) = plan.network {
        let mut missing = None;
        let mut fact = enforce(Layer::Network, || {
            missing = network::set_up(private)?;
            Ok(())
        })?;
        fact.detail = missing;
        layers.push(fact);
    }
    if plan.lock_user_namespaces {
        layers.push(enforce(Layer::NamespaceLock, namespace_lock::lock)?);
    }
    if plan.drop_bounding {
        let kept: &[Capability] = match plan.user_namespace {
            Some(IdMap::Own { .. }) => &[],
            _ => &ROOT_KEEPS,
        };
        capabilities::drop_bounding(kept)?;
    }
    Ok(layers)
}

fn map_from_outside(control: BorrowedFd<'_>) -> Result<(), LayerError> {
    let layer = Layer::UserNamespace;
    protocol::send(control, &Report::WriteMap, &[]).step(layer, "ask for the map")?;
    match protocol::receive::<Order>(control).step(layer, "wait for the map")? {
        Some(received) => match received.message {
            Order::Mapped(result) => result,
            _ => Err(LayerError::new(layer, "wait for the map", Errno::EPROTO)),
        },
        None => Err(LayerError::new(layer, "wait for the map", Errno::EPIPE)),
    }
}

/// A command that runs.
struct Running {
    status: OwnedFd,
    init: Pid,
    handle: OwnedFd,
    pid_namespace: bool,
    pumps: Vec<Pid>,
    /// The plan of its observer, and what may be written besides, until it tells where calls
    /// arrive.
    awaited: Option<(ObserverPlan, Vec<(u64, u64)>)>,
    observation: Option<Observation>,
    /// What init passed on for it.
    ways_in: Vec<OwnedFd>,
    /// How it ended, once known.
    end: Option<Event>,
    /// Whether we ended it.
    killed: bool,
}

/// The commands of a world.
struct Commands {
    running: BTreeMap<CommandId, Running>,
}

impl Commands {
    fn new() -> Self {
        Self { running: BTreeMap::new() }
    }

    /// Serves until the client is gone.
    fn serve(&mut self, control: BorrowedFd<'_>, parent: BorrowedFd<'_>) -> Result<(), Errno> {
        loop {
            let ids: Vec<CommandId> = self.running.keys().copied().collect();
            let mut watched = vec![
                PollFd::new(parent, PollFlags::POLLIN),
                PollFd::new(control, PollFlags::POLLIN),
            ];
            watched.extend(
                self.running.values().map(|one| PollFd::new(one.status.as_fd(), PollFlags::POLLIN)),
            );
            let observed: Vec<(CommandId, PollFlags)> =
                self.observed().map(|(id, (_, news))| (id, news)).collect();
            watched
                .extend(self.observed().map(|(_, (from, _))| PollFd::new(from, PollFlags::POLLIN)));
            match poll(&mut watched, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
                Ok(_) => {}
            }
            let news = |one: &PollFd<'_>| one.revents().unwrap_or(PollFlags::empty());
            let of_observers: Vec<PollFlags> = watched[2 + ids.len()..].iter().map(news).collect();
            let ready: Vec<bool> = watched.iter().map(|one| one.any().unwrap_or(false)).collect();
            if ready[0] {
                return Ok(());
            }
            for ((id, wanted), news) in observed.into_iter().zip(of_observers) {
                if news.intersects(wanted) {
                    self.observe(id, control)?;
                }
            }
            for (id, _) in ids.into_iter().zip(&ready[2..]).filter(|(_, ready)| **ready) {
                self.relay(id, control)?;
            }
            if ready[1] {
                let Some(order) = protocol::receive::<Order>(control)? else { return Ok(()) };
                self.obey(order.message, order.descriptors, control)?;
            }
        }
    }

    /// What the commands' observations wait for.
    fn observed(&self) -> impl Iterator<Item = (CommandId, (BorrowedFd<'_>, PollFlags))> {
        self.running
            .iter()
            .filter_map(|(id, one)| Some((*id, one.observation.as_ref()?.waits_for()?)))
    }

    /// Passes on what an observer tells. A command whose observer is gone is ended: nobody else
    /// answers what its filter hands over.
    fn observe(&mut self, id: CommandId, control: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(one) = self.running.get_mut(&id) else { return Ok(()) };
        match one.observation.as_mut().map(Observation::go_on) {
            None | Some(Ok(None)) => Ok(()),
            Some(Ok(Some(event))) => protocol::send(control, &Report::Command(id, event), &[]),
            Some(Err(error)) => {
                one.end.get_or_insert(Event::Unobserved(error));
                one.kill();
                Ok(())
            }
        }
    }

    fn obey(
        &mut self,
        order: Order,
        descriptors: Vec<OwnedFd>,
        control: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        match order {
            Order::Run(id) => match start(descriptors) {
                Ok(running) => {
                    self.running.insert(id, running);
                    Ok(())
                }
                Err(error) => {
                    let event = Event::Failed(error);
                    protocol::send(control, &Report::Command(id, event), &[])
                }
            },
            Order::Signal(id, signal) => {
                if let Some(one) = self.running.get(&id) {
                    // It may just have ended: its report is on the way.
                    let _ = protocol::send(one.status.as_fd(), &signal, &[]);
                }
                Ok(())
            }
            Order::Kill(id) => {
                if let Some(one) = self.running.get_mut(&id) {
                    one.kill();
                }
                Ok(())
            }
            Order::Make(_) | Order::Mapped(_) => Err(Errno::EPROTO),
        }
    }

    /// Passes one piece of news on. The end of a command is told once nothing of it is left.
    fn relay(&mut self, id: CommandId, control: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(one) = self.running.get_mut(&id) else { return Ok(()) };
        let Ok(Some(received)) = protocol::receive::<Event>(one.status.as_fd()) else {
            return self.finish(id, control);
        };
        match received.message {
            Event::Confined { layers, .. } => {
                let pid = received.sender.map_or(0, Pid::as_raw);
                let listener = received.descriptors.into_iter().next();
                if let Some(((plan, grants), listener)) = one.awaited.take().zip(listener) {
                    let ways_in = std::mem::take(&mut one.ways_in);
                    match Observation::new(plan, grants, ways_in, listener) {
                        Ok(observation) => one.observation = Some(observation),
                        Err(error) => {
                            one.end.get_or_insert(Event::Failed(error));
                            one.kill();
                            return Ok(());
                        }
                    }
                }
                let event = Event::Confined { pid, layers };
                protocol::send(control, &Report::Command(id, event), &[])
            }
            event @ Event::Prepared(_) => {
                one.ways_in = received.descriptors;
                protocol::send(control, &Report::Command(id, event), &[])
            }
            event @ (Event::Stopped(_) | Event::Uncovered(_)) => {
                protocol::send(control, &Report::Command(id, event), &[])
            }
            event @ (Event::Exited(_) | Event::Killed(_)) => {
                one.end.get_or_insert(event);
                self.finish(id, control)
            }
            // The process that says this is about to exit; its exit code means nothing then.
            event => {
                one.end.get_or_insert(event);
                Ok(())
            }
        }
    }

    /// Waits for a command's processes to be gone and reports how it ended.
    fn finish(&mut self, id: CommandId, control: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(mut one) = self.running.remove(&id) else { return Ok(()) };
        one.wait();
        let told = one.observation.as_mut().map(Observation::end);
        if !one.pid_namespace {
            let spared: Vec<Pid> = self.running.values().flat_map(Running::processes).collect();
            survivors::kill_all(&spared);
        }
        for event in told.into_iter().flatten() {
            protocol::send(control, &Report::Command(id, event), &[])?;
        }
        let end = match one.end {
            Some(end) => end,
            None if one.killed => Event::Killed(Signal::SIGKILL as i32),
            None => Event::Lost,
        };
        protocol::send(control, &Report::Command(id, end), &[])
    }

    /// Ends every command.
    fn kill_all(&mut self) {
        for one in self.running.values_mut() {
            one.kill();
        }
        let walk = self.running.values().any(|one| !one.pid_namespace);
        let mut ended = std::mem::take(&mut self.running);
        for one in ended.values_mut() {
            one.wait();
            let _ = one.observation.as_mut().map(Observation::end);
        }
        if walk {
            survivors::kill_all(&[]);
        }
    }
}

impl Running {
    /// Ends the command, at once: with its pid 1 the whole namespace goes. Without one the walk
    /// comes first, because what init leaves behind comes to this process.
    fn kill(&mut self) {
        self.killed = true;
        let _ = pidfd::send_signal(self.handle.as_fd(), Signal::SIGKILL);
    }

    /// Waits for init and the pumps to be gone.
    fn wait(&mut self) {
        // Init waits for every process of its namespace, and those that connected in the command's
        // place may have become ours. Whoever waits for another command's init later finds it gone.
        while waitpid(self.init, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive) {
            let _ = waitpid(None, None);
        }
        for pump in self.pumps.drain(..) {
            let _ = nix::sys::signal::kill(pump, Signal::SIGKILL);
            let _ = waitpid(pump, None);
        }
    }

    fn processes(&self) -> impl Iterator<Item = Pid> {
        let observer = self.observation.as_ref().and_then(Observation::process);
        std::iter::once(self.init).chain(self.pumps.iter().copied()).chain(observer)
    }
}

/// Starts the command whose plan came with the order.
fn start(mut received: Vec<OwnedFd>) -> Result<Running, LayerError> {
    let layer = Layer::PidNamespace;
    if received.len() < 4 {
        return Err(LayerError::new(layer, "receive", Errno::EPROTO));
    }
    let script = received.drain(4..).next();
    let malformed = |_| LayerError::new(layer, "receive", Errno::EPROTO);
    let [packed, input, output, error] = <[OwnedFd; 4]>::try_from(received).map_err(malformed)?;
    let copy = packed.try_clone().step(layer, "dup")?;
    let plan: CommandPlan = protocol::unpack(copy).step(layer, "unpack")?;
    let mut stdio = [input, output, error];
    let mut pumps = Vec::new();
    for (kind, descriptor) in plan.stdio.descriptors.iter().zip(&mut stdio) {
        if *kind == Stdio::Pump {
            let file = descriptor.try_clone().step(layer, "dup")?;
            let pump = pump::start(file)?;
            *descriptor = pump.output;
            pumps.push(pump.process);
        }
    }
    let (here, there) = socket::pair().step(layer, "socketpair")?;
    socket::report_sender(here.as_fd()).step(layer, "SO_PASSCRED")?;
    let mut namespaces = CloneFlags::empty();
    namespaces.set(CloneFlags::CLONE_NEWNS, plan.mounts.is_some());
    namespaces.set(CloneFlags::CLONE_NEWPID, plan.pid_namespace);
    let pid_namespace = plan.pid_namespace;
    let observer = plan.confinement.as_ref().and_then(|confinement| confinement.observer.clone());
    let observer = observer.map(|plan_of_observer| {
        let grants = plan.stdio.descriptors.iter().zip(&stdio).filter_map(|(kind, file)| {
            let status = kind.may_be_written(file).then(|| fstat(file).ok()).flatten()?;
            Some((status.st_dev, status.st_ino))
        });
        (plan_of_observer, grants.collect())
    });
    let cloned = if pid_namespace { layer } else { Layer::Mount };
    match fork(namespaces).step(cloned, "clone")? {
        Fork::Parent { child, pidfd } => Ok(Running {
            status: here,
            init: child,
            handle: pidfd,
            pid_namespace,
            pumps,
            awaited: observer,
            observation: None,
            ways_in: Vec::new(),
            end: None,
            killed: false,
        }),
        Fork::Child => {
            let mut kept: Vec<BorrowedFd<'_>> = stdio.iter().map(AsFd::as_fd).collect();
            kept.extend([there.as_fd(), packed.as_fd()]);
            kept.extend(script.iter().map(AsFd::as_fd));
            if descriptors::close_all_but(&kept).is_err() {
                exit_now(0);
            }
            std::mem::forget(here); // closed with the rest
            init::run(Inherited { plan, packed, stdio, script, status: there })
        }
    }
}
