//! The attacks and what must stop them, as data. A family of attacks is one file in `attacks/`.

use serde::Deserialize;

use crate::class::{Class, Name, Need};
use crate::support::persona::{Persona, User};

const FAMILIES: [(&str, &str); 6] = [
    ("descriptors", include_str!("attacks/descriptors.toml")),
    ("files", include_str!("attacks/files.toml")),
    ("kernel", include_str!("attacks/kernel.toml")),
    ("mounts", include_str!("attacks/mounts.toml")),
    ("network", include_str!("attacks/network.toml")),
    ("processes", include_str!("attacks/processes.toml")),
];

/// Reads every family. The files are part of the program, so a mistake in one is a bug: say where.
pub(crate) fn load() -> Vec<Attack> {
    let parse = |(family, text)| {
        toml::from_str::<Family>(text)
            .unwrap_or_else(|error| panic!("{family}.toml: {error}"))
            .attack
    };
    let attacks: Vec<Attack> = FAMILIES.into_iter().flat_map(parse).collect();
    attacks.iter().for_each(Attack::check);
    attacks
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    attack: Vec<Attack>,
}

/// One forbidden attempt.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Attack {
    /// As part of the test's name.
    pub(crate) name: String,
    /// The rows of the attack catalogue, or the findings on the kernel, that it covers.
    pub(crate) covers: String,
    /// The arguments of `dsh-probe`, with `{placeholders}`.
    pub(crate) probe: Vec<String>,
    /// Arguments of `dsh-run` beside the rung and the workspace, with `{placeholders}`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// What the command's standard descriptors are.
    #[serde(default)]
    pub(crate) stdin: Stream,
    /// See `stdin`.
    #[serde(default)]
    pub(crate) stdout: Stream,
    /// See `stdin`.
    #[serde(default)]
    pub(crate) stderr: Stream,
    /// What the host's mounts look like.
    #[serde(default)]
    pub(crate) mounts: Mounts,
    /// Puts the workspace two directories below /tmp.
    #[serde(default)]
    pub(crate) below_tmp: bool,
    /// Needs device nodes, which only root can make in the fixture.
    #[serde(default)]
    pub(crate) nodes: bool,
    /// The only architecture that has the call.
    pub(crate) only_on: Option<String>,
    /// A file that not every host has; where it is missing the attempt must end in ENOENT.
    pub(crate) host_file: Option<String>,
    /// The number of a call that not every host has, the same on every architecture; without it the
    /// attempt must end in ENOSYS.
    pub(crate) host_call: Option<i64>,
    /// The call that is refused, where the attempt makes several.
    at: Option<String>,
    /// An effect that not every host lets dsh-run govern: where the facts of the run list it as a
    /// gap, the attempt may succeed.
    pub(crate) gap: Option<String>,
    /// The last entry that fits a rung, a user and a class of hosts is what must happen; without
    /// one the attack is not made there.
    pub(crate) expect: Vec<Expectation>,
}

/// What must happen.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    /// The rung it holds for; none is both.
    pub(crate) rung: Option<Rung>,
    /// The user it holds for; none is both.
    pub(crate) uid: Option<User>,
    /// The classes of hosts that it holds for; none is all, with what takes the place of the layers
    /// that a class lacks.
    pub(crate) hosts: Option<Vec<Name>>,
    /// The errno's name; `none` where the attempt succeeds, `exit 125` where dsh-run must not
    /// start.
    pub(crate) errno: String,
    /// What stops it.
    pub(crate) layer: Layer,
    /// Why a success does no harm.
    pub(crate) why: Option<String>,
    /// The call that is refused, where that differs from the attack's.
    pub(crate) at: Option<String>,
    /// What the probe reports beside the errno.
    pub(crate) detail: Option<String>,
}

/// The errno of an attempt that succeeds.
pub(crate) const NO_ERRNO: &str = "none";
/// Stands in for an errno where dsh-run must refuse to start the command.
pub(crate) const REFUSED: &str = "exit 125";

/// The confined rungs.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rung {
    ReadOnly,
    WorkspaceWrite,
}

impl Rung {
    /// Both, narrow to wide.
    pub(crate) const ALL: [Self; 2] = [Self::ReadOnly, Self::WorkspaceWrite];

    /// As `--mode` takes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
        }
    }
}

/// The layers of the design that stop an attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Layer {
    Mount,
    Landlock,
    Seccomp,
    Capabilities,
    Network,
    PidNamespace,
    IpcNamespace,
    Descriptors,
    NamespaceLock,
    Init,
    Observer,
    /// dsh-run refuses such a request.
    Policy,
    /// The kernel's own permissions refuse it outside as well.
    Permissions,
    /// It succeeds, on objects of the sandbox or within what the rung grants.
    Harmless,
}

/// What stands behind a standard descriptor.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stream {
    /// /dev/null for stdin, a pipe that the test reads for the others.
    #[default]
    Usual,
    /// A pipe.
    Pipe,
    /// A host file: open for reading as stdin, for writing as stdout or stderr.
    File,
    /// A host file open for reading and writing.
    ReadWriteFile,
    /// A host file below /tmp, which the sandbox replaces.
    HiddenFile,
    /// A host FIFO.
    Fifo,
    /// A character device that the sandbox's own /dev lacks.
    CharDevice,
    /// A host directory.
    Directory,
    /// A host file that is open as O_PATH only.
    PathOnly,
    /// A block device.
    BlockDevice,
    /// A terminal.
    Terminal,
}

/// What the host does with its mounts, in a mount namespace of the test's own.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mounts {
    /// Nothing.
    #[default]
    AsTheyAre,
    /// `{host}/mounted` is another file system before dsh-run starts.
    Before,
    /// `{workspace}/mounted` becomes another file system while the command runs, with shared
    /// propagation.
    Late,
}

impl Attack {
    /// What must happen on this rung for this user, on a host of this class.
    pub(crate) fn expectation(
        &self,
        rung: Rung,
        persona: Persona,
        class: &Class,
    ) -> Option<Expectation> {
        let fits = |expectation: &&Expectation| {
            expectation.uid.is_none_or(|only| only.is(persona))
                && expectation.rung.is_none_or(|only| only == rung)
                && expectation.hosts.as_ref().is_none_or(|only| only.contains(&class.name))
        };
        let mut expectation = self.expect.iter().rev().find(fits)?.clone();
        if expectation.at.is_none() {
            expectation.at.clone_from(&self.at);
        }
        if expectation.hosts.is_none() {
            expectation = class.translate(&expectation, self.gap.as_deref());
        }
        Some(expectation)
    }

    /// What the host must let the suite do.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let devices = matches!(self.stdin, Stream::CharDevice | Stream::BlockDevice);
        let needs = [
            (Need::Mounts, self.mounts != Mounts::AsTheyAre),
            (Need::Nodes, self.nodes),
            (Need::Devices, devices),
        ];
        needs.into_iter().filter(|(_, needed)| *needed).map(|(need, _)| need).collect()
    }

    /// A table that contradicts itself tests nothing.
    fn check(&self) {
        for Expectation { errno, layer, why, .. } in &self.expect {
            let harmless = *layer == Layer::Harmless;
            assert_eq!(errno == NO_ERRNO, harmless, "{}: only a success is harmless", self.name);
            assert_eq!(why.is_some(), harmless, "{}: a success needs its reason", self.name);
            let known = errno == NO_ERRNO || errno == REFUSED || errno.starts_with('E');
            assert!(known, "{}: no errno {errno:?}", self.name);
        }
        assert!(!self.expect.is_empty() && !self.covers.is_empty(), "{}: incomplete", self.name);
    }
}
