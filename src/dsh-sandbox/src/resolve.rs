//! From a request and what the host offers to a plan: the one place that decides.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use caps::Capability;
use dsh_facts::{Network, Observe, SandboxMode};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use crate::carve_outs;
use crate::coverage::Coverage;
use crate::effects;
use crate::environment::{self, Environment};
use crate::error::{RequestError, SandboxError, errno_of};
use crate::evidence;
use crate::governing_file::check_below;
use crate::host::Host;
use crate::ladder::Row;
use crate::plan::{
    CommandPlan, Confinement, LandlockPlan, MountPlan, ObserverPlan, Plan, PrivateNetwork,
    ROOT_KEEPS, RefusedCall, Workdir, WorldPlan, WritableRoot,
};
use crate::policy::Policy;
use crate::process_limit::ProcessLimit;
use crate::request::Request;
use crate::root::Root;
use crate::roots::{self, Roots};
use crate::seccomp_program;
use crate::seccomp_rules::{Refusal, Rules, Situation};
use crate::stdio::{self, StdioPlan};
use crate::traps::Traps;

/// The first Landlock ABI that decides about pathname unix sockets.
const RESOLVE_UNIX: u32 = 9;
/// Device nodes that a command may open for writing.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// The same, where /dev is the sandbox's own: its pseudo-terminals are too.
const OWN_DEVICES: [&str; 2] = ["/dev/pts", "/dev/console"];

/// Resolves a request on a host. Without descriptors the plan is one to look at, not to run.
///
/// # Errors
///
/// [`SandboxError::Request`] for a request that cannot be carried out,
/// [`SandboxError::Unavailable`] when the host cannot confine anything,
/// [`SandboxError::Partial`] when gaps are not accepted.
pub fn resolve(
    request: &Request,
    host: &Host,
    descriptors: Option<[BorrowedFd<'_>; 3]>,
) -> Result<Plan, SandboxError> {
    resolve_policy(request, &Policy::of(request)?, host, None, descriptors)
}

/// The same, with the policy at hand, and with the program that becomes the warden of a run.
pub(crate) fn resolve_policy(
    request: &Request,
    policy: &Policy,
    host: &Host,
    program: Option<&Path>,
    descriptors: Option<[BorrowedFd<'_>; 3]>,
) -> Result<Plan, SandboxError> {
    check_command(request)?;
    let roots = roots::resolve(request, policy)?;
    if let Some(profile) = &request.profile {
        for file in &profile.files {
            check_below("profile", file, &roots.writable, &roots.mounts)?;
        }
    }
    if !policy.mode.confines() {
        return unconfined(request, policy, roots);
    }
    let row = Row::of(host)?;
    let carve_outs = carve_outs::resolve(policy, &roots)?;
    if let (true, Err(error)) = (carve_outs.need_mounts(), &host.mounts) {
        return Err(SandboxError::CarveOuts(error.clone()));
    }
    let network = policy.network;
    let network_off_by_filter = network != Network::Host && !row.private_network;
    let limits = ProcessLimit::of(host, &row, policy.pids);

    let mut situations: Vec<Situation> = Vec::new();
    if host.caller.is_root() {
        situations.push(Situation::RootCaller);
    }
    situations.push(if row.pid_namespace { Situation::OwnInit } else { Situation::HostPids });
    if !row.lock_by_sysctl {
        situations.push(Situation::NamespacesLockedByFilter);
    }
    if network_off_by_filter {
        situations.push(Situation::NetworkOffByFilter);
    }
    let observes = row.observer && policy.observe != Observe::Off;
    let writable: Vec<&Path> = roots.writable.iter().map(Root::path).collect();
    let coverage = Coverage::of(host, &row, policy.mode, network, &limits, observes, &writable);
    let decided_by_landlock = row.landlock.is_some_and(|abi| abi >= RESOLVE_UNIX);
    if !row.own_mounts && policy.mode == SandboxMode::ReadOnly {
        situations.extend([Situation::MetadataRefused, Situation::MetadataGoverned]);
    } else if observes && !coverage.others_read_only {
        situations.extend([Situation::MetadataPerformed, Situation::MetadataGoverned]);
    }
    if !observes && !decided_by_landlock {
        situations.push(Situation::UnixSocketsRefused);
    }
    let network_in_force = if network_off_by_filter { Network::Off } else { network };
    let rules = policy.rules()?;
    let Some(table) = &rules else {
        return Err(defect("syscalls", "a confined rung names no table").into());
    };
    let traps = Traps::table()?;
    let level = observed_level(request, policy);
    let trapped = observes.then(|| traps.select(level, &situations));
    let filter = seccomp_program::compile(table.select(&situations), trapped)
        .map_err(|error| defect("syscalls", &format!("seccompiler: {error}")))?;

    let temporary = row.own_mounts.then(temporary_directory).flatten();
    let stdio = match descriptors {
        Some(descriptors) => stdio::plan(descriptors, row.own_mounts, network)?,
        None => StdioPlan::PASS,
    };
    let environment = environment::confined(&policy.environment, temporary.is_some(), &writable);
    check_environment(&environment)?;
    let sockets = roots::sockets(request, policy, &roots)?;
    let landlock = row.landlock.map(|abi| {
        landlock_plan(abi, &roots, &row, temporary.clone(), network_in_force, sockets.clone())
    });
    let observer = observes.then(|| ObserverPlan {
        mode: policy.mode,
        level,
        refused: refused_by_observer(table, &situations),
        decides_sockets: !decided_by_landlock,
        sockets,
        abstract_sockets: network != Network::Host && row.private_network,
        performs_metadata: situations.contains(&Situation::MetadataPerformed),
        own_mounts: row.own_mounts,
        pid_namespace: row.pid_namespace,
        landlock: landlock.clone(),
        administrator: host.caller.has(Capability::CAP_SYS_ADMIN),
        network: network_in_force,
        protected: carve_outs.protected.iter().map(OsString::from).collect(),
        workspace: roots.workspace.path.clone(),
    });
    let plan = Plan {
        mode: policy.mode,
        world: world_of(host, &row, network)?,
        network: network_in_force,
        command: CommandPlan {
            mode: policy.mode,
            pid_namespace: row.pid_namespace,
            mounts: row.own_mounts.then(|| MountPlan {
                carve_outs: carve_outs.mounts,
                ..mount_plan(policy, &roots, temporary.clone(), limits.pid_max)
            }),
            confinement: Some(Confinement {
                capabilities: capabilities(host, &row),
                landlock,
                filter,
                observer,
                processes: limits.rlimit,
            }),
            stdio,
            workdir: workdir(request, &roots.workspace)?,
            umask: current_umask(),
            foreground: false,
            command: request.command.clone(),
            environment: environment.variables,
        },
        workspace: roots.workspace,
        writable: roots.writable,
        absent: row.absent,
        gaps: [effects::gaps(&effects::list(&coverage)), carve_outs.gaps].concat(),
        environment_dropped: environment.dropped,
        profile: request.profile.as_ref().map(|profile| profile.name.clone()),
        hidden: carve_outs.hidden,
        protected: carve_outs.protected,
        missing: roots.missing.into_iter().chain(carve_outs.missing).collect(),
        rules,
        situations,
    };
    if request.require_full && !plan.gaps.is_empty() {
        let effects: Vec<_> = plan.gaps.iter().map(|gap| gap.effect.as_str()).collect();
        return Err(SandboxError::Partial { effects: effects.join(", ") });
    }
    if let Some(program) = program {
        check_below("warden program", program, &plan.writable, &roots.mounts)?;
    }
    Ok(plan)
}

/// What is watched. Without the switch that has a call and its answer take turns on one processor
/// (Linux 6.6) each trapped call costs ten times as much, and where most of them succeed only those
/// are trapped that must be.
fn observed_level(request: &Request, policy: &Policy) -> Observe {
    let slow = !evidence::at_least(&evidence::kernel_release(), 6, 6);
    match policy.observe {
        level
            if request.observe.is_none() && policy.mode == SandboxMode::WorkspaceWrite && slow =>
        {
            level.min(Observe::Sockets)
        }
        level => level,
    }
}

/// The calls that the filter hands over in order to be refused: ENOSYS it answers itself.
fn refused_by_observer(rules: &Rules, situations: &[Situation]) -> Vec<RefusedCall> {
    rules
        .select(situations)
        .filter(|selected| selected.rule.errno != Refusal::Enosys)
        .map(RefusedCall::from)
        .collect()
}

/// The part of the plan that a warden carries out first. It depends on little, so that a warden can
/// be at it while the rest is resolved.
///
/// # Errors
///
/// As [`resolve`].
pub(crate) fn resolve_world(policy: &Policy, host: &Host) -> Result<WorldPlan, SandboxError> {
    if !policy.mode.confines() {
        return Ok(WorldPlan::default());
    }
    world_of(host, &Row::of(host)?, policy.network)
}

fn world_of(host: &Host, row: &Row, network: Network) -> Result<WorldPlan, SandboxError> {
    Ok(WorldPlan {
        user_namespace: row.user_namespace.then(|| host.caller.id_map()).transpose()?,
        ipc_namespace: row.ipc_namespace,
        network: (network != Network::Host && row.private_network)
            .then_some(PrivateNetwork { loopback: network == Network::Loopback }),
        lock_user_namespaces: row.lock_by_sysctl,
        drop_bounding: row.user_namespace || host.caller.has(Capability::CAP_SETPCAP),
    })
}

/// The widest rung: a warden without layers, so that limits of time and kills still reach all of
/// the command.
fn unconfined(request: &Request, policy: &Policy, roots: Roots) -> Result<Plan, SandboxError> {
    let environment = environment::unconfined(&policy.environment);
    let workdir = workdir(request, &roots.workspace)?;
    check_environment(&environment)?;
    Ok(Plan {
        mode: policy.mode,
        workspace: roots.workspace,
        writable: roots.writable,
        network: policy.network,
        world: WorldPlan::default(),
        command: CommandPlan {
            mode: policy.mode,
            pid_namespace: false,
            mounts: None,
            confinement: None,
            stdio: StdioPlan::PASS,
            workdir,
            umask: current_umask(),
            foreground: false,
            command: request.command.clone(),
            environment: environment.variables,
        },
        absent: Vec::new(),
        gaps: Vec::new(),
        environment_dropped: environment.dropped,
        profile: request.profile.as_ref().map(|profile| profile.name.clone()),
        hidden: Vec::new(),
        protected: Vec::new(),
        missing: Vec::new(),
        rules: None,
        situations: Vec::new(),
    })
}

/// The numbers of the capabilities that a command keeps.
fn capabilities(host: &Host, row: &Row) -> Vec<u8> {
    if !host.caller.is_root() {
        return Vec::new();
    }
    // Where signals are what ends its processes, they must not become somebody's whom init may not
    // signal.
    let by_signals = !row.pid_namespace && !row.user_namespace;
    let out_of_reach = by_signals && !host.caller.has(Capability::CAP_KILL);
    let kept = ROOT_KEEPS.iter().filter(|one| !out_of_reach || **one != Capability::CAP_SETUID);
    kept.map(|capability| capability.index()).collect()
}

fn mount_plan(
    policy: &Policy,
    roots: &Roots,
    temporary: Option<OsString>,
    pid_max: Option<u32>,
) -> MountPlan {
    let hidden = |root: &Root| {
        root.path().starts_with("/dev/shm")
            || temporary.as_ref().is_some_and(|place| {
                root.path().starts_with(place) && root.path() != Path::new(place)
            })
    };
    MountPlan {
        shown: (roots.writable.is_empty() && hidden(&roots.workspace))
            .then(|| roots.workspace.clone()),
        writable: roots
            .writable
            .iter()
            .zip(&roots.interfaces)
            .map(|(root, interfaces)| WritableRoot {
                root: root.clone(),
                interfaces: interfaces.clone(),
            })
            .collect(),
        temporary,
        scratch_size: policy.scratch_size.to_string(),
        pid_max,
        carve_outs: Vec::new(),
    }
}

fn landlock_plan(
    abi: u32,
    roots: &Roots,
    row: &Row,
    temporary: Option<OsString>,
    network: Network,
    sockets: Vec<OsString>,
) -> LandlockPlan {
    let mut scratch: Vec<OsString> = Vec::new();
    let mut devices: Vec<OsString> = DEVICES.iter().map(OsString::from).collect();
    if row.own_mounts {
        scratch.extend(temporary);
        scratch.push("/dev/shm".into());
        devices.extend(OWN_DEVICES.iter().map(OsString::from));
    }
    LandlockPlan {
        abi,
        roots: roots.writable.clone(),
        scratch,
        devices,
        sockets,
        // In a private network the abstract sockets are the world's own, and its background
        // servers must stay in reach.
        scope_abstract_sockets: network == Network::Host || !row.private_network,
    }
}

/// The directory that the command starts in: the current one, and nothing is put in its place. Only
/// where it has been deleted, so that no name can mean it, a workspace that was named serves.
fn workdir(request: &Request, workspace: &Root) -> Result<Workdir, RequestError> {
    match (&request.workdir, roots::current_directory()) {
        (Some(path), _) if path.is_absolute() => Ok(Workdir::Named(path.into())),
        (Some(path), current) => Ok(Workdir::Named(current?.join(path).into())),
        (None, Err(RequestError::CurrentDirectory { errno }))
            if errno == Errno::ENOENT as i32 && request.workspace.is_some() =>
        {
            Ok(Workdir::Same(workspace.clone()))
        }
        (None, current) => {
            let path = current?;
            let metadata = std::fs::metadata(".").map_err(|error| {
                RequestError::CurrentDirectory { errno: errno_of(&error) as i32 }
            })?;
            Ok(Workdir::Same(Root {
                path: path.into(),
                device: metadata.dev(),
                inode: metadata.ino(),
            }))
        }
    }
}

/// Where /tmp really is.
fn temporary_directory() -> Option<OsString> {
    let place = Path::new("/tmp").canonicalize().ok()?;
    // Unlike stat, this asks nothing of a file server, which may have gone silent.
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(&place, flags, Mode::empty()).is_ok().then(|| place.into())
}

fn check_command(request: &Request) -> Result<(), RequestError> {
    match request.command.first() {
        None => return Err(RequestError::EmptyCommand),
        Some(program) if program.is_empty() => return Err(RequestError::EmptyCommand),
        Some(_) => {}
    }
    if request.command.iter().any(|argument| argument.as_bytes().contains(&0)) {
        return Err(RequestError::Nul { what: "an argument" });
    }
    Ok(())
}

fn check_environment(environment: &Environment) -> Result<(), RequestError> {
    let bad = environment
        .variables
        .iter()
        .any(|(name, value)| name.as_bytes().contains(&0) || value.as_bytes().contains(&0));
    if bad { Err(RequestError::Nul { what: "the environment" }) } else { Ok(()) }
}

fn defect(name: &'static str, message: &str) -> RequestError {
    RequestError::BuiltIn { name, message: message.to_owned() }
}

/// The caller's file mode creation mask. The call only tells it by setting another, which must not
/// be seen by a second thread; proc_pid_status(5) has it since Linux 4.7.
fn current_umask() -> u32 {
    const USUAL: u32 = 0o022;
    if dsh_kernel::process::is_single_threaded() == Ok(true) {
        let mask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
        nix::sys::stat::umask(mask);
        return mask.bits();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(USUAL)
}
