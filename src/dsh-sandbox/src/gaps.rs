//! Gaps: the effects that a mode promises to govern and that are not governed on this host.

use dsh_facts::{Gap, Network, SandboxMode};

/// What is governed in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverage {
    pub(crate) mode: SandboxMode,
    pub(crate) own_mounts: bool,
    pub(crate) other_mounts_read_only: bool,
    pub(crate) pid_namespace: bool,
    pub(crate) ipc_namespace: bool,
    /// Landlock's ABI.
    pub(crate) landlock: Option<u32>,
    pub(crate) wanted_network: Network,
    pub(crate) private_network: bool,
    /// Why the number of processes is not limited as asked.
    pub(crate) process_limit: Option<&'static str>,
}

/// The first ABI that decides about pathname unix sockets.
const RESOLVE_UNIX: u32 = 9;
/// The first ABI with scopes for signals and abstract sockets.
const SCOPES: u32 = 6;
/// The first ABI that decides about ioctl on devices.
const IOCTL_DEV: u32 = 5;
/// The first ABI that decides about truncation.
const TRUNCATE: u32 = 3;

const USER_NAMESPACES: &str = "allow user namespaces and mounts: the container's seccomp and AppArmor profile, or sysctl \
     kernel.apparmor_restrict_unprivileged_userns=0";

/// All gaps of a run, most serious first.
pub(crate) fn list(coverage: &Coverage) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut gap = |missing: bool, effect: &str, reason: &str, remedy: &str| {
        if missing {
            gaps.push(Gap {
                effect: effect.to_owned(),
                reason: reason.to_owned(),
                remedy: remedy.to_owned(),
            });
        }
    };
    let abi = coverage.landlock.unwrap_or(0);
    let pid_namespaces = if coverage.own_mounts {
        "let the container mount a /proc of its own (podman: --security-opt unmask=ALL)"
    } else {
        USER_NAMESPACES
    };
    gap(
        abi < RESOLVE_UNIX,
        "unix_sockets",
        "a command can connect to the host's pathname unix sockets (D-Bus, docker, agents): \
         Landlock decides that from ABI 9 on",
        "Linux 7.1, or services whose sockets the caller's user id may not open",
    );
    gap(
        !coverage.other_mounts_read_only && coverage.mode != SandboxMode::ReadOnly,
        "metadata",
        "Landlock does not govern modes, owners, times and extended attributes, and there is no \
         read-only mount: a command can change those of any file of the caller's",
        USER_NAMESPACES,
    );
    gap(
        !coverage.own_mounts && abi < TRUNCATE,
        "truncate",
        "Landlock governs truncation from ABI 3 on: a command can empty any file of the caller's",
        "Linux 6.2, or user namespaces",
    );
    gap(
        !coverage.own_mounts,
        "devices",
        "no private /dev: a command can read the host's devices and terminals, and write device \
         nodes in its writable roots, as far as the caller may",
        USER_NAMESPACES,
    );
    gap(
        !coverage.own_mounts && abi < IOCTL_DEV,
        "device_ioctl",
        "Landlock governs ioctl on devices from ABI 5 on",
        "Linux 6.10, or user namespaces",
    );
    gap(
        !coverage.pid_namespace,
        "processes",
        if abi < SCOPES {
            "no pid namespace: a command sees the host's processes and can signal and stop the \
             caller's, and set their priorities"
        } else {
            "no pid namespace: a command sees the host's processes and can set priorities of the \
             caller's; signals, tracing and limits are refused"
        },
        pid_namespaces,
    );
    gap(
        !coverage.pid_namespace,
        "leftovers",
        "no pid namespace: what a command leaves running is found by walking its descendants, \
         which a command that forks fast enough can outrun",
        pid_namespaces,
    );
    gap(
        !coverage.own_mounts,
        "scratch",
        "no private /tmp: the host's is not writable, and neither is /dev/shm",
        USER_NAMESPACES,
    );
    gap(
        !coverage.ipc_namespace,
        "ipc",
        "System V shared memory, semaphores and message queues are the host's",
        USER_NAMESPACES,
    );
    gap(
        coverage.wanted_network == Network::Loopback && !coverage.private_network,
        "network",
        "no private network can be had, so there is none at all: internet sockets are refused",
        USER_NAMESPACES,
    );
    gap(
        (coverage.wanted_network == Network::Host || !coverage.private_network) && abi < SCOPES,
        "abstract_sockets",
        "abstract unix sockets of the host are in reach: Landlock scopes them from ABI 6 on",
        "Linux 6.12, or a private network",
    );
    gap(
        coverage.process_limit.is_some(),
        "process_limit",
        coverage.process_limit.unwrap_or_default(),
        "a pids cgroup around the caller",
    );
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: Coverage = Coverage {
        mode: SandboxMode::WorkspaceWrite,
        own_mounts: true,
        other_mounts_read_only: true,
        pid_namespace: true,
        ipc_namespace: true,
        landlock: Some(9),
        wanted_network: Network::Loopback,
        private_network: true,
        process_limit: None,
    };

    fn effects(coverage: Coverage) -> Vec<String> {
        list(&coverage).into_iter().map(|gap| gap.effect).collect()
    }

    #[test]
    fn nothing_is_missing_where_everything_is_governed() {
        assert!(effects(COMPLETE).is_empty());
    }

    #[test]
    fn unix_sockets_are_a_gap_below_abi_9() {
        assert_eq!(effects(Coverage { landlock: Some(7), ..COMPLETE }), ["unix_sockets"]);
    }

    #[test]
    fn landlock_alone_leaves_its_list() {
        let alone = Coverage {
            own_mounts: false,
            other_mounts_read_only: false,
            pid_namespace: false,
            ipc_namespace: false,
            private_network: false,
            landlock: Some(7),
            ..COMPLETE
        };
        assert_eq!(
            effects(alone),
            [
                "unix_sockets",
                "metadata",
                "devices",
                "processes",
                "leftovers",
                "scratch",
                "ipc",
                "network"
            ]
        );
        assert!(
            !effects(Coverage { mode: SandboxMode::ReadOnly, ..alone })
                .contains(&"metadata".to_owned()),
            "refused by the filter there"
        );
        assert!(effects(Coverage { landlock: Some(2), ..alone }).contains(&"truncate".to_owned()));
    }
}
