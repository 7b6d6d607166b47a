//! The hosts, and what each allows.

use std::collections::BTreeSet;

use dsh_facts::{Layer, Network, SandboxMode, State};
use nix::errno::Errno;

use crate::claims;
use crate::support::kernel;
use crate::support::stage::Stage;

/// A simulated host with what a run there must come to.
#[derive(Clone, Copy)]
pub(crate) struct Host {
    /// As part of a test's name.
    pub(crate) name: &'static str,
    /// Options of hostsim.
    options: &'static [&'static str],
    /// Who runs the command.
    pub(crate) uid: u32,
    enforced: &'static [Layer],
    partial: &'static [Layer],
    pub(crate) absent: &'static [(Layer, &'static str)],
    gaps: &'static [&'static str],
    /// The network in force where the private one is asked for.
    pub(crate) network: Network,
}

/// An ordinary user of the stage.
pub(crate) const USER: u32 = 1000;

/// Without mounts of its own a command is held by these alone.
const LANDLOCK_ONLY: &[Layer] = &[
    Layer::Limits,
    Layer::Capabilities,
    Layer::Landlock,
    Layer::Descriptors,
    Layer::Seccomp,
    Layer::Observer,
];

const ALL: &[Layer] = &[
    Layer::UserNamespace,
    Layer::IpcNamespace,
    Layer::Network,
    Layer::NamespaceLock,
    Layer::PidNamespace,
    Layer::Mount,
    Layer::Proc,
    Layer::Limits,
    Layer::Capabilities,
    Layer::Landlock,
    Layer::Descriptors,
    Layer::Seccomp,
    Layer::Observer,
];

/// landlock_create_ruleset (the same number on every architecture) fails with EOPNOTSUPP: built in,
/// and left out of the boot parameter `lsm`.
const NOT_ENABLED: &str = "444:95";

/// What depends on the kernel is added later.
const LANDLOCK_ONLY_GAPS: &[&str] =
    &["devices", "processes", "leftovers", "scratch", "ipc", "network", "process_limit"];

const USERNS_REFUSED: Host = Host {
    name: "",
    options: &[],
    uid: USER,
    enforced: LANDLOCK_ONLY,
    partial: &[],
    absent: &[(Layer::UserNamespace, "EPERM")],
    gaps: LANDLOCK_ONLY_GAPS,
    network: Network::Off,
};

/// Docker's defaults with no capability left, as in a restricted pod.
pub(crate) const DOCKER_USER: Host = Host {
    name: "docker-user",
    options: &["-s", "docker", "-m", "-c", "none", "-n"],
    ..USERNS_REFUSED
};

/// Nothing to confine with.
pub(crate) const NOTHING: &[&str] = &["-L", "-s", "nouserns"];

/// Every host on which a confined command can run.
pub(crate) const HOSTS: &[Host] = &[
    DOCKER_USER,
    Host {
        name: "docker-root",
        options: &["-s", "docker", "-m", "-c", "docker"],
        uid: 0,
        ..USERNS_REFUSED
    },
    Host {
        name: "no-user-namespaces",
        options: &["-s", "nouserns", "-y", "unprivileged_userns_clone=0"],
        ..USERNS_REFUSED
    },
    Host {
        name: "no-user-namespaces-left",
        options: &["-M", "0"],
        absent: &[(Layer::UserNamespace, "ENOSPC")],
        ..USERNS_REFUSED
    },
    Host {
        // Its SETUID, SETGID and SETFCAP are gone too, so the map could not be written.
        name: "root-without-capabilities",
        options: &["-c", "none"],
        uid: 0,
        ..USERNS_REFUSED
    },
    Host {
        name: "apparmor",
        options: &["-A"],
        absent: &[(Layer::Mount, "EPERM")],
        ..USERNS_REFUSED
    },
    Host {
        name: "no-mounts",
        options: &["-s", "nomount", "-c", "docker"],
        uid: 0,
        absent: &[(Layer::Mount, "EACCES")],
        ..USERNS_REFUSED
    },
    Host {
        // A new /proc would show more than the masked one, and its read-only /proc/sys keeps
        // max_user_namespaces from being written: the filter refuses namespaces instead.
        name: "podman",
        options: &["-s", "podman", "-m", "-c", "none"],
        uid: USER,
        enforced: &[
            Layer::UserNamespace,
            Layer::IpcNamespace,
            Layer::Network,
            Layer::Mount,
            Layer::Limits,
            Layer::Capabilities,
            Layer::Landlock,
            Layer::Descriptors,
            Layer::Seccomp,
            Layer::Observer,
        ],
        partial: &[Layer::Proc],
        absent: &[(Layer::PidNamespace, "EPERM")],
        gaps: &["processes", "leftovers"],
        network: Network::Loopback,
    },
    Host {
        name: "no-landlock",
        options: &["-L"],
        uid: USER,
        enforced: ALL,
        partial: &[],
        absent: &[(Layer::Landlock, "ENOSYS")],
        gaps: &[],
        network: Network::Loopback,
    },
    Host {
        name: "landlock-not-enabled",
        options: &["-E", NOT_ENABLED],
        absent: &[(Layer::Landlock, "EOPNOTSUPP")],
        ..COMPLETE
    },
    Host {
        name: "no-network-namespaces",
        options: &["-M", "net:0"],
        absent: &[(Layer::Network, "ENOSPC")],
        gaps: &["network"],
        network: Network::Off,
        ..COMPLETE
    },
    Host {
        name: "no-notification",
        options: &["-N"],
        absent: &[(Layer::Observer, "EINVAL")],
        ..COMPLETE
    },
    Host {
        name: "no-notification-and-no-user-namespaces",
        options: &["-N", "-s", "nouserns"],
        absent: &[(Layer::UserNamespace, "EPERM"), (Layer::Observer, "EINVAL")],
        gaps: &[
            "metadata",
            "devices",
            "processes",
            "leftovers",
            "scratch",
            "ipc",
            "network",
            "process_limit",
        ],
        ..USERNS_REFUSED
    },
    Host { name: "no-shared-memory", options: &["-S"], ..COMPLETE },
    Host { name: "bare-root", uid: 0, ..COMPLETE },
];

const COMPLETE: Host = Host {
    name: "bare-user",
    options: &[],
    uid: USER,
    enforced: ALL,
    partial: &[],
    absent: &[],
    gaps: &[],
    network: Network::Loopback,
};

impl Host {
    /// The stage.
    pub(crate) fn stage(&self) -> Stage {
        Stage::new(self.options, self.uid)
    }

    /// Whether a command has mounts of its own.
    pub(crate) fn own_mounts(&self) -> bool {
        self.enforced.contains(&Layer::Mount)
    }

    /// Whether a command has a network of its own.
    pub(crate) fn own_network(&self) -> bool {
        self.enforced.contains(&Layer::Network) && !self.is_absent(Layer::Network)
    }

    /// Why this kernel cannot be that host, if so.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let impossible = !self.own_mounts() && kernel::landlock().is_err();
        Stage::obstacle().or(impossible.then_some("the kernel has no Landlock to fall back to"))
    }

    /// The layers that the facts must list, and no others.
    pub(crate) fn layers(&self) -> BTreeSet<String> {
        let mut absent: Vec<(Layer, String)> =
            self.absent.iter().map(|(layer, errno)| (*layer, (*errno).to_owned())).collect();
        if let (Err(errno), false) = (self.landlock(), self.is_absent(Layer::Landlock)) {
            absent.push((Layer::Landlock, format!("{errno:?}")));
        }
        let is_absent = |layer| absent.iter().any(|(one, _)| *one == layer);
        let enforced = self.enforced.iter().map(|layer| (*layer, State::Enforced));
        let partial = self.partial.iter().map(|layer| (*layer, State::Partial));
        enforced
            .chain(partial)
            .filter(|(layer, _)| !is_absent(*layer))
            .map(|(layer, state)| claims::line(layer, state, None))
            .chain(
                absent
                    .iter()
                    .map(|(layer, errno)| claims::line(*layer, State::Absent, Some(errno))),
            )
            .collect()
    }

    /// The effects that the facts must list as gaps, and no others.
    pub(crate) fn gaps(&self, mode: SandboxMode) -> BTreeSet<String> {
        let abi = self.landlock().unwrap_or(0);
        let mut gaps: BTreeSet<&str> = self.gaps.iter().copied().collect();
        if mode == SandboxMode::ReadOnly {
            gaps.remove("metadata");
        }
        let mut add = |missing: bool, effect| missing && gaps.insert(effect);
        add(!self.own_mounts() && abi < 3, "truncate");
        add(!self.own_mounts() && abi < 5, "device_ioctl");
        add(!self.own_network() && abi < 6, "abstract_sockets");
        add(self.uid == 0 && !kernel::at_least(6, 14), "process_limit");
        gaps.into_iter().map(str::to_owned).collect()
    }

    fn is_absent(&self, layer: Layer) -> bool {
        self.absent.iter().any(|(absent, _)| *absent == layer)
    }

    fn landlock(&self) -> Result<u32, Errno> {
        if self.is_absent(Layer::Landlock) { Err(Errno::ENOSYS) } else { kernel::landlock() }
    }
}
