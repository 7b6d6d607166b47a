//! Finds out what the host offers by doing it, in throw-away processes with a deadline.
//!
//! Each step is a trial run of the very code that confines commands, up to where exec would come,
//! so that the answer cannot differ from what a run would meet.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use caps::Capability;
use dsh_facts::{Layer, SandboxMode};
use dsh_kernel::seccomp::Instruction;
use nix::errno::Errno;

use crate::error::{LayerError, SandboxError};
use crate::host::{Caller, Host};
use crate::plan::{
    CommandPlan, Confinement, LandlockPlan, MountPlan, PrivateNetwork, Workdir, WorldPlan,
};
use crate::protocol::Event;
use crate::stdio::StdioPlan;
use crate::warden_handle::{Warden, WardenProgram};

/// How long one step may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// `BPF_RET | BPF_K` with SECCOMP_RET_ALLOW: the shortest filter.
const ALLOW_ALL: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };

/// Probes every step.
///
/// # Errors
///
/// [`SandboxError::Layer`] when a step failed in a way that says nothing about the host, such as
/// lack of memory; [`SandboxError::Warden`] when no throw-away process could be started.
pub fn probe(program: &WardenProgram) -> Result<Host, SandboxError> {
    let caller = Caller::current();
    let landlock = Host::optimistic().landlock;
    let trial = |world: &WorldPlan, command: &CommandPlan| run(program, world, command);

    let user_namespace = match caller.id_map() {
        Ok(map) => {
            let world = WorldPlan { user_namespace: Some(map), ..WorldPlan::default() };
            trial(&world, &nothing())?
        }
        Err(error) => Err(error),
    };
    // The rest is tried inside the user namespace, or else directly by a caller who may.
    let base = match (&user_namespace, caller.id_map()) {
        (Ok(()), Ok(map)) => Ok(WorldPlan { user_namespace: Some(map), ..WorldPlan::default() }),
        (Err(_), _) if caller.has(Capability::CAP_SYS_ADMIN) => Ok(WorldPlan::default()),
        (Err(error), _) => Err(error.clone()),
        (_, Err(error)) => Err(error),
    };
    let within = |change: &dyn Fn(&mut WorldPlan, &mut CommandPlan)| match &base {
        Err(error) => Ok(Err(error.clone())),
        Ok(base) => {
            let (mut world, mut command) = (base.clone(), nothing());
            change(&mut world, &mut command);
            trial(&world, &command)
        }
    };
    let host = Host {
        mounts: within(&|_, command| command.mounts = Some(own_mounts()))?,
        pid_namespace: within(&|_, command| {
            command.mounts = Some(own_mounts());
            command.pid_namespace = true;
        })?,
        ipc_namespace: within(&|world, _| world.ipc_namespace = true)?,
        network: within(&|world, _| world.network = Some(PrivateNetwork { loopback: true }))?,
        namespace_lock: match &user_namespace {
            Ok(()) => within(&|world, _| world.lock_user_namespaces = true)?,
            Err(error) => Err(error.clone()),
        },
        landlock: match landlock {
            Ok(abi) => trial(&WorldPlan::default(), &landlocked(abi))?.map(|()| abi),
            Err(error) => Err(error),
        },
        seccomp: trial(&WorldPlan::default(), &filtered())?,
        user_namespace,
        caller,
    };
    let failure = failures(&host).find(|error| !error.means_absent()).cloned();
    failure.map_or(Ok(host), |error| Err(error.into()))
}

fn failures(host: &Host) -> impl Iterator<Item = &LayerError> {
    let steps = [
        &host.user_namespace,
        &host.mounts,
        &host.pid_namespace,
        &host.ipc_namespace,
        &host.network,
        &host.namespace_lock,
        &host.seccomp,
    ];
    steps.into_iter().filter_map(|step| step.as_ref().err()).chain(host.landlock.as_ref().err())
}

/// One trial: the outer error is ours, the inner one the host's answer.
fn run(
    program: &WardenProgram,
    world: &WorldPlan,
    command: &CommandPlan,
) -> Result<Result<(), LayerError>, SandboxError> {
    let attempt = || -> Result<(), SandboxError> {
        let null = File::options().read(true).write(true).open("/dev/null").map_err(|error| {
            SandboxError::warden("open /dev/null")(crate::error::errno_of(&error))
        })?;
        let mut warden = Warden::start(program, world)?;
        warden.run(command, [null.as_fd(), null.as_fd(), null.as_fd()], None)?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match warden.next(Some(left))? {
                Some((_, Event::Confined { .. })) => return Ok(()),
                Some((_, Event::Failed(error))) => return Err(error.into()),
                Some((_, Event::Prepared(_) | Event::Stopped(_))) => {}
                Some(_) => return Err(SandboxError::RunnerFailed),
                None => {
                    return Err(LayerError::new(Layer::Mount, "probe", Errno::ETIMEDOUT).into());
                }
            }
        }
    };
    match attempt() {
        Ok(()) => Ok(Ok(())),
        Err(SandboxError::Layer(error)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
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

fn own_mounts() -> MountPlan {
    let temporary = std::path::Path::new("/tmp").canonicalize().ok().map(OsString::from);
    MountPlan { temporary, scratch_size: "64k".to_owned(), ..MountPlan::default() }
}

fn landlocked(abi: u32) -> CommandPlan {
    let landlock = LandlockPlan {
        abi,
        roots: Vec::new(),
        scratch: Vec::new(),
        devices: vec!["/dev/null".into()],
        scope_abstract_sockets: true,
    };
    confined(Some(landlock))
}

fn filtered() -> CommandPlan {
    confined(None)
}

fn confined(landlock: Option<LandlockPlan>) -> CommandPlan {
    CommandPlan {
        confinement: Some(Confinement {
            capabilities: Vec::new(),
            landlock,
            filter: vec![ALLOW_ALL],
            processes: None,
        }),
        ..nothing()
    }
}
