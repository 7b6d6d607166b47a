//! The plan of a run: plain values that say everything there is to do. The warden executes them
//! and decides nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use caps::Capability;
use dsh_facts::{Gap, LayerFact, Network, Observe, SandboxMode};
use dsh_kernel::seccomp::Instruction;
use serde::{Deserialize, Serialize};

use crate::carve_outs::CarveOut;
use crate::root::Root;
use crate::seccomp_rules::{Alternative, Rules, Selected, Situation};
use crate::stdio::StdioPlan;

/// What a warden makes once, for all its commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldPlan {
    /// A user namespace; none where the caller's own serves or none can be had.
    pub user_namespace: Option<IdMap>,
    /// IPC and UTS namespaces.
    pub ipc_namespace: bool,
    /// A network namespace.
    pub network: Option<PrivateNetwork>,
    /// No further user namespaces.
    pub lock_user_namespaces: bool,
    /// Leave only [`Confinement::capabilities`] in the bounding set.
    pub drop_bounding: bool,
}

/// How ids are mapped into a user namespace, user_namespaces(7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdMap {
    /// The caller's own ids to themselves; a process may write that for itself.
    Own {
        /// Effective user id.
        uid: u32,
        /// Effective group id.
        gid: u32,
    },
    /// A root caller's whole map as identity, written by the process outside.
    Whole {
        /// Text for uid_map.
        uid_map: String,
        /// Text for gid_map.
        gid_map: String,
    },
}

/// A network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateNetwork {
    /// Whether `lo` is brought up.
    pub loopback: bool,
}

/// What is done for one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPlan {
    /// The rung; what is confined follows from the rest.
    pub mode: SandboxMode,
    /// A pid namespace of its own, with our init as pid 1.
    pub pid_namespace: bool,
    /// A mount namespace of its own.
    pub mounts: Option<MountPlan>,
    /// The layers that the command's last process puts on itself; none in the widest rung.
    pub confinement: Option<Confinement>,
    /// What happens to descriptors 0, 1 and 2.
    pub stdio: StdioPlan,
    /// Where it starts.
    pub workdir: Workdir,
    /// The caller's file mode creation mask.
    pub umask: u32,
    /// Whether the command's group becomes the terminal's foreground group (of descriptor 0).
    pub foreground: bool,
    /// The program and its arguments; none for a probe, which stops where exec would come.
    pub command: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// The mount layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPlan {
    /// Roots that stay writable.
    pub writable: Vec<WritableRoot>,
    /// A root that is shown read-only, because the scratch would hide it.
    pub shown: Option<Root>,
    /// The canonical place of /tmp; none on a host without one.
    pub temporary: Option<OsString>,
    /// tmpfs(5) `size` of the scratch.
    pub scratch_size: String,
    /// `kernel.pid_max` of the pid namespace.
    pub pid_max: Option<u32>,
    /// What is taken out again, outermost first.
    pub carve_outs: Vec<CarveOut>,
}

/// One writable root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableRoot {
    /// The directory.
    pub root: Root,
    /// Mounts of kernel interfaces below it, relative: they stay read-only.
    pub interfaces: Vec<OsString>,
}

/// What the command's last process puts on itself before exec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Numbers of the capabilities that stay.
    pub capabilities: Vec<u8>,
    /// Landlock, where the host has it.
    pub landlock: Option<LandlockPlan>,
    /// The seccomp filter.
    #[serde(with = "instructions")]
    pub filter: Vec<Instruction>,
    /// Who serves the calls that the filter hands over; it hands over none without.
    pub observer: Option<ObserverPlan>,
    /// `RLIMIT_NPROC`.
    pub processes: Option<u64>,
}

/// The Landlock layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockPlan {
    /// The kernel's ABI.
    pub abi: u32,
    /// Roots below which everything may be written.
    pub roots: Vec<Root>,
    /// The scratch, of which the same holds.
    pub scratch: Vec<OsString>,
    /// Device nodes and directories of them that may be opened for writing, where they exist.
    pub devices: Vec<OsString>,
    /// Unix sockets that may be connected to, by name, from ABI 9 on.
    pub sockets: Vec<OsString>,
    /// Keep abstract unix sockets of others out of reach; needed where the network is the host's.
    pub scope_abstract_sockets: bool,
}

/// The observer of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverPlan {
    /// The rung.
    pub mode: SandboxMode,
    /// What is watched.
    pub level: Observe,
    /// What the filter hands over to be refused.
    pub refused: Vec<RefusedCall>,
    /// Whether it decides which unix sockets may be reached; else Landlock does.
    pub decides_sockets: bool,
    /// Unix sockets of the host's that may be reached, by name.
    pub sockets: Vec<OsString>,
    /// Whether abstract unix sockets may be reached: those of a private network.
    pub abstract_sockets: bool,
    /// Whether it changes metadata in the caller's place, below the writable roots.
    pub performs_metadata: bool,
    /// Whether the command has a mount tree of its own.
    pub own_mounts: bool,
    /// Whether the command has a pid namespace of its own.
    pub pid_namespace: bool,
    /// Landlock's rules, where the host has it.
    pub landlock: Option<LandlockPlan>,
    /// Whether a command of user id 0 would be an administrator outside.
    pub administrator: bool,
    /// The network in force.
    pub network: Network,
    /// What of the writable roots stays read-only.
    pub protected: Vec<OsString>,
    /// The workspace.
    pub workspace: OsString,
}

impl ObserverPlan {
    /// One that has nothing to do, to see whether there can be any.
    pub(crate) fn idle() -> Self {
        Self {
            mode: SandboxMode::ReadOnly,
            level: Observe::Off,
            refused: Vec::new(),
            decides_sockets: false,
            sockets: Vec::new(),
            abstract_sockets: true,
            performs_metadata: false,
            own_mounts: false,
            pid_namespace: false,
            landlock: None,
            administrator: false,
            network: Network::Off,
            protected: Vec::new(),
            workspace: OsString::new(),
        }
    }
}

/// A call that is refused under some conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// The call.
    pub number: u32,
    /// The answer.
    pub errno: i32,
    /// Whether only an administrator may do it outside.
    pub privileged: bool,
    /// Alternatives, of which one must hold; any call when empty.
    pub when: Vec<Alternative>,
}

impl RefusedCall {
    /// Whether a call with these arguments is refused.
    pub(crate) fn refuses(&self, number: u32, arguments: &[u64; 6]) -> bool {
        self.number == number
            && (self.when.is_empty() || self.when.iter().any(|one| one.holds(arguments)))
    }
}

impl From<Selected<'_>> for RefusedCall {
    fn from(selected: Selected<'_>) -> Self {
        Self {
            number: selected.number,
            errno: selected.rule.errno.errno().cast_signed(),
            privileged: selected.rule.privileged,
            when: selected.rule.when.clone(),
        }
    }
}

/// The directory in which a command starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workdir {
    /// The caller's current directory: the very same inode, or the run is refused.
    Same(Root),
    /// Whatever this name leads to inside.
    Named(OsString),
}

/// A whole run: what the warden does, and what it amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The rung.
    pub mode: SandboxMode,
    /// The workspace.
    pub workspace: Root,
    /// Every writable root.
    pub writable: Vec<Root>,
    /// The network in force.
    pub network: Network,
    /// Done once per warden.
    pub world: WorldPlan,
    /// Done per command.
    pub command: CommandPlan,
    /// Layers that this host does not offer, with its errno.
    pub absent: Vec<LayerFact>,
    /// Effects that are not governed.
    pub gaps: Vec<Gap>,
    /// Names of variables withheld from the command.
    pub environment_dropped: Vec<OsString>,
    /// The profile in use, as it was named.
    pub profile: Option<String>,
    /// What the command cannot read.
    pub hidden: Vec<PathBuf>,
    /// What of the writable roots it cannot write.
    pub protected: Vec<PathBuf>,
    /// Hidden and protected paths, and writable roots of the profile, that do not exist.
    pub missing: Vec<PathBuf>,
    /// The table of refused system calls, with the profile's rules.
    pub(crate) rules: Option<Rules>,
    /// What made rules of the system call table necessary.
    pub(crate) situations: Vec<Situation>,
}

/// What a root caller keeps: it must be able to act on files of other owners, and on read-only
/// mounts these do no more than for any file.
pub(crate) const ROOT_KEEPS: [Capability; 6] = [
    Capability::CAP_CHOWN,
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_FOWNER,
    Capability::CAP_KILL,
    Capability::CAP_SETGID,
    Capability::CAP_SETUID,
];

/// Instructions as plain tuples: the kernel crate knows no serde.
mod instructions {
    use dsh_kernel::seccomp::Instruction;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        program: &[Instruction],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let tuples: Vec<_> = program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect();
        tuples.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Instruction>, D::Error> {
        let tuples = Vec::<(u16, u8, u8, u32)>::deserialize(deserializer)?;
        Ok(tuples.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect())
    }
}
