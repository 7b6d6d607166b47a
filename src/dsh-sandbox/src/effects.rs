//! The effects that a confined mode promises, and what governs each in a run. An effect that
//! nothing governs is a gap.

use dsh_facts::{Gap, Layer, Network, SandboxMode};

use crate::coverage::Coverage;

/// One effect.
#[derive(Debug)]
pub(crate) struct Effect {
    /// Its name on the wire.
    pub(crate) name: &'static str,
    /// The layers that govern it, by name, and `host` where the host itself does.
    pub(crate) governed_by: Vec<&'static str>,
    /// The step that would govern it, where none does, with the reason and the remedy.
    pub(crate) gap: Option<(Layer, Gap)>,
}

/// The host's own read-only mounts govern, as in a nested run.
const HOST: &str = "host";
/// The first Landlock ABI that decides about pathname unix sockets.
const RESOLVE_UNIX: u32 = 9;
/// The first with scopes for signals and abstract sockets.
const SCOPES: u32 = 6;
/// The first that decides about ioctl on devices.
const IOCTL_DEV: u32 = 5;
/// The first that decides about truncation.
const TRUNCATE: u32 = 3;
const CGROUP: &str = "a pids cgroup around dsh-run: systemd-run --user --scope -p TasksMax=4096; \
     Docker and Podman: --pids-limit";

/// Every effect that the mode promises, most serious first.
pub(crate) fn list(coverage: &Coverage) -> Vec<Effect> {
    let c = coverage;
    let layer = |holds: bool, layer: Layer| holds.then_some(layer.as_str());
    let mount = layer(c.own_mounts, Layer::Mount);
    let landlock = |abi: u32| layer(c.landlock >= abi, Layer::Landlock);
    let always = |layer: Layer| Some(layer.as_str());
    let pid_namespace = layer(c.pid_namespace, Layer::PidNamespace);
    let private = c.private_network && c.wanted_network != Network::Host;

    let mut effects = vec![governed("host_files", [mount, landlock(1)])];
    if c.mode == SandboxMode::WorkspaceWrite {
        effects.push(governed("workspace", [mount, landlock(1)]));
    }
    // Without either the filter refuses to make unix sockets at all.
    let observer = layer(c.observer, Layer::Observer);
    let decided = landlock(RESOLVE_UNIX).or(observer).or(always(Layer::Seccomp));
    effects.push(governed("unix_sockets", [decided]));
    let by_host = (c.others_read_only && !c.own_mounts).then_some(HOST);
    let refused = layer(!c.own_mounts && c.mode == SandboxMode::ReadOnly, Layer::Seccomp);
    effects.push(effect("metadata", [mount, by_host, refused, observer], || Missing {
        step: Layer::Mount,
        reason: "Landlock does not govern modes, owners, times and extended attributes, and there \
                 is neither a read-only mount nor an observer: a command can change those of any \
                 file of the caller's",
        remedy: c.remedy(Layer::Mount),
    }));
    effects.push(effect("truncate", [mount, landlock(TRUNCATE)], || Missing {
        step: Layer::Mount,
        reason: "Landlock governs truncation from ABI 3 on: a command can empty any file of the \
                 caller's",
        remedy: format!("{}; or {}", c.remedy(Layer::Mount), c.newer_landlock("6.2")),
    }));
    effects.push(effect("devices", [mount], || Missing {
        step: Layer::Mount,
        reason: "no private /dev: a command can read the host's devices and terminals, and write \
                 device nodes in its writable roots, as far as the caller may",
        remedy: c.remedy(Layer::Mount),
    }));
    effects.push(effect("device_ioctl", [mount, landlock(IOCTL_DEV)], || Missing {
        step: Layer::Mount,
        reason: "Landlock governs ioctl on devices from ABI 5 on",
        remedy: format!("{}; or {}", c.remedy(Layer::Mount), c.newer_landlock("6.10")),
    }));
    let proc = layer(c.pid_namespace, Layer::Proc);
    effects.push(effect("processes", [pid_namespace, proc], || Missing {
        step: Layer::PidNamespace,
        reason: if c.landlock < SCOPES {
            "no pid namespace: a command sees the host's processes and can signal and stop the \
             caller's, and set their priorities"
        } else {
            "no pid namespace: a command sees the host's processes and can set priorities of the \
             caller's; signals, tracing and limits are refused"
        },
        remedy: c.remedy(Layer::PidNamespace),
    }));
    effects.push(effect("leftovers", [pid_namespace], || Missing {
        step: Layer::PidNamespace,
        reason: "no pid namespace: what a command leaves running is found by walking its \
                 descendants, which a command that forks fast enough can outrun",
        remedy: c.remedy(Layer::PidNamespace),
    }));
    effects.push(effect("scratch", [mount], || Missing {
        step: Layer::Mount,
        reason: "no private /tmp: the host's is not writable, and neither is /dev/shm",
        remedy: c.remedy(Layer::Mount),
    }));
    effects.push(effect("ipc", [layer(c.ipc_namespace, Layer::IpcNamespace)], || Missing {
        step: Layer::IpcNamespace,
        reason: "System V shared memory, semaphores and message queues are the host's",
        remedy: c.remedy(Layer::IpcNamespace),
    }));
    if c.wanted_network != Network::Host {
        let off = layer(!private && c.wanted_network == Network::Off, Layer::Seccomp);
        effects.push(effect("network", [layer(private, Layer::Network), off], || Missing {
            step: Layer::Network,
            reason: "no private network can be had, so there is none at all: internet sockets are \
                     refused",
            remedy: c.remedy(Layer::Network),
        }));
    }
    let scoped = landlock(SCOPES).filter(|_| !private);
    effects.push(effect("abstract_sockets", [layer(private, Layer::Network), scoped], || Missing {
        step: Layer::Landlock,
        reason: "abstract unix sockets of the host are in reach: Landlock scopes them from ABI 6 on",
        remedy: c.newer_landlock("6.12") + ", or a private network",
    }));
    match c.process_limit {
        Ok(None) => {}
        Ok(Some(layer)) => effects.push(governed("process_limit", [always(layer)])),
        Err((step, reason)) => effects.push(effect("process_limit", [], || Missing {
            step,
            reason,
            remedy: CGROUP.to_owned(),
        })),
    }
    let lock = layer(c.lock_by_sysctl, Layer::NamespaceLock);
    effects.extend([
        governed("namespaces", [lock, always(Layer::Seccomp)]),
        governed("capabilities", [always(Layer::Capabilities)]),
        governed("set_user_id", [always(Layer::Capabilities), mount]),
        governed("system_calls", [always(Layer::Seccomp)]),
        governed("descriptors", [always(Layer::Descriptors)]),
    ]);
    effects
}

/// Those of the effects that nothing governs.
pub(crate) fn gaps(effects: &[Effect]) -> Vec<Gap> {
    effects.iter().filter_map(|effect| effect.gap.as_ref()).map(|(_, gap)| gap.clone()).collect()
}

/// What is to be said where nothing governs an effect.
struct Missing {
    step: Layer,
    reason: &'static str,
    remedy: String,
}

fn effect<const N: usize>(
    name: &'static str,
    governors: [Option<&'static str>; N],
    missing: impl FnOnce() -> Missing,
) -> Effect {
    let governed_by: Vec<_> = governors.into_iter().flatten().collect();
    let gap = governed_by.is_empty().then(|| {
        let Missing { step, reason, remedy } = missing();
        (step, Gap { effect: name.to_owned(), reason: reason.to_owned(), remedy })
    });
    Effect { name, governed_by, gap }
}

/// An effect that something governs wherever a command runs at all.
fn governed<const N: usize>(name: &'static str, governors: [Option<&'static str>; N]) -> Effect {
    Effect { name, governed_by: governors.into_iter().flatten().collect(), gap: None }
}

#[cfg(test)]
mod tests;
