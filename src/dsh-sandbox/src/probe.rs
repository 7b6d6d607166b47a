//! Finds out what the host offers by doing it, in throw-away processes with a deadline.
//!
//! Each step is a trial run of the very code that confines commands, up to where exec would come,
//! so that the answer cannot differ from what a run would meet.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use caps::Capability;
use dsh_facts::{Layer, SandboxMode};
use dsh_kernel::seccomp::Instruction;
use nix::errno::Errno;

use crate::error::{LayerError, SandboxError};
use crate::host::{Host, observer};
use crate::plan::{
    CommandPlan, Confinement, IdMap, LandlockPlan, MountPlan, ObserverPlan, PrivateNetwork,
    Workdir, WorldPlan,
};
use crate::protocol::Event;
use crate::stdio::StdioPlan;
use crate::warden_handle::{Warden, WardenProgram};

/// How long a probe may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// `BPF_RET | BPF_K` with SECCOMP_RET_ALLOW: the shortest filter.
const ALLOW_ALL: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };

/// Probes every step: all at once first, and one by one only where that fails.
///
/// # Errors
///
/// [`SandboxError::Layer`] when a step failed in a way that says nothing about the host, such as
/// lack of memory, or was not done in time; [`SandboxError::Warden`] when no throw-away process
/// could be started.
pub fn probe(program: &WardenProgram) -> Result<Host, SandboxError> {
    let hopeful = Host::optimistic();
    let trials = Trials { program, deadline: Instant::now() + DEADLINE };
    let (world, command) = everything(&hopeful);
    match trials.run(&world, &command)? {
        Ok(()) => Ok(hopeful),
        Err(_) => one_by_one(hopeful, &trials),
    }
}

/// All that the host seems to offer.
fn everything(hopeful: &Host) -> (WorldPlan, CommandPlan) {
    let own_mounts = hopeful.mounts.is_ok();
    let map = hopeful.caller.id_map().ok();
    let world = WorldPlan {
        ipc_namespace: own_mounts,
        network: own_mounts.then_some(PRIVATE_NETWORK),
        lock_user_namespaces: map.is_some(),
        user_namespace: map,
        drop_bounding: false,
    };
    let mut command = CommandPlan {
        mounts: own_mounts.then(scratch_alone),
        pid_namespace: own_mounts,
        ..confined(hopeful.landlock.as_ref().ok().copied())
    };
    if let Some(confinement) = command.confinement.as_mut().filter(|_| hopeful.observer.is_ok()) {
        confinement.observer = Some(ObserverPlan::idle());
    }
    (world, command)
}

fn one_by_one(hopeful: Host, trials: &Trials<'_>) -> Result<Host, SandboxError> {
    let Host { caller, landlock, .. } = hopeful;
    let user_namespace = match caller.id_map() {
        Ok(map) => trials.run(&world_of(Some(map.clone())), &nothing())?.map(|()| map),
        Err(error) => Err(error),
    };
    // The rest is tried inside the user namespace, or else directly by a caller who may.
    let base = match &user_namespace {
        Ok(map) => Ok(world_of(Some(map.clone()))),
        Err(_) if caller.has(Capability::CAP_SYS_ADMIN) => Ok(world_of(None)),
        Err(error) => Err(error.clone()),
    };
    let within = |step: Layer, change: &dyn Fn(&mut WorldPlan, &mut CommandPlan)| match &base {
        Err(error) => Ok(Err(error.clone())),
        Ok(base) => {
            let (mut world, mut command) = (base.clone(), nothing());
            change(&mut world, &mut command);
            // One unshare makes all namespaces of a world, and a user namespace alone can be had.
            let down_to = |layer| if layer == Layer::UserNamespace { step } else { layer };
            trials.run(&world, &command).map(|outcome| {
                outcome.map_err(|error| LayerError { layer: down_to(error.layer), ..error })
            })
        }
    };
    let mounts = within(Layer::Mount, &|_, command| command.mounts = Some(scratch_alone()))?;
    Ok(Host {
        observer: match observer(&caller, user_namespace.is_ok() && mounts.is_ok()) {
            Ok(()) => {
                let mut listening = confined(None);
                if let Some(confinement) = &mut listening.confinement {
                    confinement.observer = Some(ObserverPlan::idle());
                }
                trials.run(&world_of(None), &listening)?
            }
            Err(error) => Err(error),
        },
        mounts,
        pid_namespace: within(Layer::PidNamespace, &|_, command| {
            command.mounts = Some(scratch_alone());
            command.pid_namespace = true;
        })?,
        ipc_namespace: within(Layer::IpcNamespace, &|world, _| world.ipc_namespace = true)?,
        network: within(Layer::Network, &|world, _| world.network = Some(PRIVATE_NETWORK))?,
        namespace_lock: match &user_namespace {
            Ok(_) => within(Layer::NamespaceLock, &|world, _| world.lock_user_namespaces = true)?,
            Err(error) => Err(error.clone()),
        },
        landlock: match landlock {
            Ok(abi) => trials.run(&world_of(None), &confined(Some(abi)))?.map(|()| abi),
            Err(error) => Err(error),
        },
        seccomp: trials.run(&world_of(None), &confined(None))?,
        user_namespace: user_namespace.map(drop),
        caller,
    })
}

/// The trials of one probe.
struct Trials<'a> {
    program: &'a WardenProgram,
    deadline: Instant,
}

impl Trials<'_> {
    /// One trial: the inner error is the host's answer, the outer one says nothing about the host.
    fn run(
        &self,
        world: &WorldPlan,
        command: &CommandPlan,
    ) -> Result<Result<(), LayerError>, SandboxError> {
        match self.attempt(world, command) {
            Ok(()) => Ok(Ok(())),
            Err(SandboxError::Layer(error)) if error.means_absent() => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    fn attempt(&self, world: &WorldPlan, command: &CommandPlan) -> Result<(), SandboxError> {
        let null = File::options().read(true).write(true).open("/dev/null").map_err(|error| {
            SandboxError::warden("open /dev/null")(crate::error::errno_of(&error))
        })?;
        let mut warden = Warden::start(self.program, world)?;
        warden.run(command, [null.as_fd(), null.as_fd(), null.as_fd()], None)?;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match warden.next(Some(left))? {
                Some((_, Event::Confined { .. })) => return Ok(()),
                Some((_, Event::Failed(error))) => return Err(error.into()),
                Some((_, Event::Prepared(_) | Event::Stopped(_))) => {}
                Some(_) => return Err(SandboxError::RunnerFailed),
                None => {
                    warden.abandon();
                    let step = "probe, which may wait for a file server that has gone silent";
                    return Err(LayerError::new(Layer::Mount, step, Errno::ETIMEDOUT).into());
                }
            }
        }
    }
}

const PRIVATE_NETWORK: PrivateNetwork = PrivateNetwork { loopback: true };

fn world_of(user_namespace: Option<IdMap>) -> WorldPlan {
    WorldPlan { user_namespace, ..WorldPlan::default() }
}

fn nothing() -> CommandPlan {
    CommandPlan {
        mode: SandboxMode::ReadOnly,
        pid_namespace: false,
        mounts: None,
        confinement: None,
        stdio: StdioPlan::PASS,
        workdir: Workdir::Named("/".into()),
        umask: 0o022,
        foreground: false,
        command: Vec::new(),
        environment: Vec::new(),
    }
}

/// Mounts as every run has them, but for what is put at names of the host's other than /dev and
/// /proc: such a name may lead to a file server that has gone silent.
fn scratch_alone() -> MountPlan {
    MountPlan { scratch_size: "64k".to_owned(), ..MountPlan::default() }
}

/// The layers that the command's own process puts on itself.
fn confined(landlock: Option<u32>) -> CommandPlan {
    let landlock = landlock.map(|abi| LandlockPlan {
        abi,
        roots: Vec::new(),
        scratch: Vec::new(),
        devices: vec!["/dev/null".into()],
        sockets: Vec::new(),
        scope_abstract_sockets: true,
    });
    CommandPlan {
        confinement: Some(Confinement {
            capabilities: Vec::new(),
            landlock,
            filter: vec![ALLOW_ALL],
            observer: None,
            processes: None,
        }),
        ..nothing()
    }
}
