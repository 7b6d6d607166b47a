//! What the host offers, step by step, and who is asking.

use std::path::Path;

use caps::{CapSet, Capability};
use dsh_facts::Layer;
use nix::unistd::{getegid, geteuid};

use crate::error::{LayerError, Step};
use crate::plan::IdMap;

/// Who wants a command confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Effective capabilities.
    capabilities: caps::CapsHashSet,
}

impl Caller {
    /// The calling process.
    #[must_use]
    pub fn current() -> Self {
        Self {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            capabilities: caps::read(None, CapSet::Effective).unwrap_or_default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn with(uid: u32, capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self { uid, gid: uid, capabilities: capabilities.into_iter().collect() }
    }

    /// Whether the caller's user id is 0.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether the caller holds a capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// The map for a user namespace of this caller's.
    ///
    /// A root caller without the capabilities to write its whole map gets none: a map of id 0
    /// alone would make every file of another owner unwritable, and without SETFCAP the kernel
    /// refuses even that (Linux 5.12).
    pub(crate) fn id_map(&self) -> Result<IdMap, LayerError> {
        if !self.is_root() {
            return Ok(IdMap::Own { uid: self.uid, gid: self.gid });
        }
        let needed = [Capability::CAP_SETUID, Capability::CAP_SETGID, Capability::CAP_SETFCAP];
        if !needed.iter().all(|capability| self.has(*capability)) {
            return Err(LayerError::new(
                Layer::UserNamespace,
                "uid_map of root without SETUID, SETGID and SETFCAP",
                nix::errno::Errno::EPERM,
            ));
        }
        let read = |path: &str| {
            std::fs::read_to_string(path)
                .step(Layer::UserNamespace, "read")
                .map_err(|error| error.at(path))
        };
        Ok(IdMap::Whole {
            uid_map: identity(&read("/proc/self/uid_map")?),
            gid_map: identity(&read("/proc/self/gid_map")?),
        })
    }
}

/// The caller's ids as identity, extent by extent: `0 1000 1` becomes `0 0 1`.
fn identity(map: &str) -> String {
    map.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (inside, _outside, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{inside} {inside} {count}\n"))
        })
        .collect()
}

/// What the host offers to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The caller.
    pub caller: Caller,
    /// A user namespace in which the caller has capabilities.
    pub user_namespace: Result<(), LayerError>,
    /// A private, read-only mount tree, in the user namespace or else directly.
    pub mounts: Result<(), LayerError>,
    /// A pid namespace with a /proc of its own.
    pub pid_namespace: Result<(), LayerError>,
    /// IPC and UTS namespaces.
    pub ipc_namespace: Result<(), LayerError>,
    /// A network namespace with `lo` up.
    pub network: Result<(), LayerError>,
    /// `max_user_namespaces` of the own user namespace.
    pub namespace_lock: Result<(), LayerError>,
    /// Landlock, and its ABI.
    pub landlock: Result<u32, LayerError>,
    /// seccomp filters.
    pub seccomp: Result<(), LayerError>,
    /// A listener for what a filter hands over, and the calls with which it is served.
    pub observer: Result<(), LayerError>,
}

impl Host {
    /// The steps, in the order in which they build on each other.
    pub(crate) const STEPS: [Layer; 9] = [
        Layer::UserNamespace,
        Layer::Mount,
        Layer::PidNamespace,
        Layer::IpcNamespace,
        Layer::Network,
        Layer::NamespaceLock,
        Layer::Landlock,
        Layer::Seccomp,
        Layer::Observer,
    ];

    /// How the host refuses a step; none where it offers it.
    pub(crate) fn refusal(&self, step: Layer) -> Option<&LayerError> {
        match step {
            Layer::UserNamespace => self.user_namespace.as_ref().err(),
            Layer::Mount => self.mounts.as_ref().err(),
            Layer::PidNamespace => self.pid_namespace.as_ref().err(),
            Layer::IpcNamespace => self.ipc_namespace.as_ref().err(),
            Layer::Network => self.network.as_ref().err(),
            Layer::NamespaceLock => self.namespace_lock.as_ref().err(),
            Layer::Landlock => self.landlock.as_ref().err(),
            Layer::Seccomp => self.seccomp.as_ref().err(),
            Layer::Observer => self.observer.as_ref().err(),
            // What the rest takes, no host refuses.
            _ => None,
        }
    }

    /// A host that offers everything but what one cheap call shows to be missing.
    ///
    /// A run begins with this: its own steps are the probe, and cost nothing extra where they
    /// succeed. Where one fails, [`crate::probe::probe`] finds out about all of them.
    #[must_use]
    pub fn optimistic() -> Self {
        let caller = Caller::current();
        let user_namespace = caller.id_map().map(drop);
        let direct = caller.has(Capability::CAP_SYS_ADMIN);
        let behind = |offered: &Result<(), LayerError>| match offered {
            Err(error) if !direct => Err(error.clone()),
            _ => Ok(()),
        };
        Self {
            mounts: behind(&user_namespace),
            pid_namespace: behind(&user_namespace),
            ipc_namespace: behind(&user_namespace),
            network: behind(&user_namespace),
            namespace_lock: user_namespace.clone(),
            landlock: dsh_kernel::landlock::abi().step(Layer::Landlock, "landlock_create_ruleset"),
            seccomp: dsh_kernel::seccomp::errno_action_available().step(Layer::Seccomp, "seccomp"),
            observer: observer(&caller, user_namespace.is_ok()),
            user_namespace,
            caller,
        }
    }
}

/// The setting by which Yama keeps processes from reading each other's memory.
pub(crate) const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// What an observer needs of the kernel: notifications (Linux 5.0), descriptors of other processes
/// (5.6) and the mounts of open files (5.8). In a user namespace of its own it may read whatever
/// runs there; elsewhere Yama allows that to ancestors alone (ptrace(2)), and an observer is none.
pub(crate) fn observer(caller: &Caller, in_user_namespace: bool) -> Result<(), LayerError> {
    dsh_kernel::seccomp::listener_available().step(Layer::Observer, "seccomp")?;
    dsh_kernel::node::of_name(Path::new("/")).map(drop).step(Layer::Observer, "statx")?;
    let scope = std::fs::read_to_string(PTRACE_SCOPE).unwrap_or_default();
    let open = matches!(scope.trim(), "" | "0") || caller.has(Capability::CAP_SYS_PTRACE);
    if in_user_namespace || open {
        return Ok(());
    }
    let errno = nix::errno::Errno::EPERM;
    Err(LayerError::new(Layer::Observer, "process_vm_readv", errno).at(PTRACE_SCOPE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_copied_extent_by_extent_as_identity() {
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(identity(rootless), "0 0 1\n1 1 65536\n");
    }
}
