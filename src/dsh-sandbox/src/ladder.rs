//! The ladder: the best confinement that a host allows, or none.

use dsh_facts::{Layer, LayerFact, State};
use nix::errno::Errno;

use crate::error::{LayerError, SandboxError, errno_name};
use crate::host::Host;

/// The row of the ladder that a host is on (DESIGN §6): the best that it allows.
pub(crate) struct Row {
    pub(crate) user_namespace: bool,
    pub(crate) own_mounts: bool,
    pub(crate) pid_namespace: bool,
    pub(crate) ipc_namespace: bool,
    pub(crate) private_network: bool,
    pub(crate) lock_by_sysctl: bool,
    pub(crate) landlock: Option<u32>,
    pub(crate) observer: bool,
    pub(crate) absent: Vec<LayerFact>,
}

impl Row {
    /// The best row that the host allows.
    pub(crate) fn of(host: &Host) -> Result<Self, SandboxError> {
        let own_mounts = host.mounts.is_ok();
        let landlock = host.landlock.as_ref().ok().copied();
        let mut missing = Vec::new();
        if let Err(error) = &host.seccomp {
            missing.push(error);
        }
        if !own_mounts && landlock.is_none() {
            missing.extend(host.user_namespace.as_ref().err());
            missing.extend(host.mounts.as_ref().err());
            missing.extend(host.landlock.as_ref().err());
        }
        missing.dedup();
        if let Some(first) = missing.first() {
            return Err(SandboxError::Unavailable {
                refusals: missing.iter().map(|e| e.to_string()).collect::<Vec<_>>().join("; "),
                remedy: "allow user namespaces and mounts, or use a kernel with Landlock (5.13 and \
                         later): dsh-run doctor names what refuses them",
                first: (*first).clone(),
            });
        }
        let absent = [
            host.user_namespace.as_ref().err(),
            host.mounts.as_ref().err().filter(|e| host.user_namespace.as_ref().err() != Some(e)),
            // Without a /proc of its own a pid namespace would lie about pids.
            own_mounts.then(|| host.pid_namespace.as_ref().err()).flatten(),
            own_mounts.then(|| host.ipc_namespace.as_ref().err()).flatten(),
            own_mounts.then(|| host.network.as_ref().err()).flatten(),
            host.landlock.as_ref().err(),
            host.observer.as_ref().err(),
        ];
        Ok(Self {
            // A user namespace in which nothing can be mounted is of no use.
            user_namespace: own_mounts && host.user_namespace.is_ok(),
            own_mounts,
            pid_namespace: own_mounts && host.pid_namespace.is_ok(),
            ipc_namespace: own_mounts && host.ipc_namespace.is_ok(),
            private_network: own_mounts && host.network.is_ok(),
            lock_by_sysctl: own_mounts
                && host.user_namespace.is_ok()
                && host.namespace_lock.is_ok(),
            landlock,
            observer: host.observer.is_ok(),
            absent: absent.into_iter().flatten().map(absent_fact).collect(),
        })
    }
}

fn absent_fact(error: &LayerError) -> LayerFact {
    LayerFact {
        layer: if error.layer == Layer::Proc { Layer::PidNamespace } else { error.layer },
        state: State::Absent,
        abi: None,
        errno: Some(errno_name(Errno::from_raw(error.errno))),
        detail: Some(error.step.clone()),
        microseconds: None,
    }
}
