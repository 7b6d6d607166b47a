//! How complete the enforcement was: layers, and the gaps between them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One mechanism of confinement.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layer {
    /// A user namespace, user_namespaces(7).
    UserNamespace,
    /// A pid namespace of the command's own, with an init that takes everything down with it.
    PidNamespace,
    /// IPC and UTS namespaces.
    IpcNamespace,
    /// A private, read-only view of the host's mounts, with scratch and a minimal /dev.
    Mount,
    /// A private, read-only /proc.
    Proc,
    /// A network namespace.
    Network,
    /// No further user namespaces: `max_user_namespaces` 0. Where that cannot be set the seccomp
    /// filter refuses the calls, and this layer is not listed.
    NamespaceLock,
    /// Capabilities dropped from every set.
    Capabilities,
    /// Landlock rules, landlock(7).
    Landlock,
    /// A filter of system calls, seccomp(2).
    Seccomp,
    /// Descriptors: only 0, 1 and 2, and those made safe.
    Descriptors,
    /// Resource limits.
    Limits,
    /// A supervisor that decides about unix sockets, sees what is refused, and refuses what the
    /// filter hands to it: seccomp_unotify(2).
    Observer,
}

impl Layer {
    /// The layer's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserNamespace => "user_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::Mount => "mount",
            Self::Proc => "proc",
            Self::Network => "network",
            Self::NamespaceLock => "namespace_lock",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Descriptors => "descriptors",
            Self::Limits => "limits",
            Self::Observer => "observer",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far one layer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Everything that the layer is there for.
    Enforced,
    /// Part of it; the gaps say what is missing.
    Partial,
    /// The host does not offer it; `errno` says how it refused.
    Absent,
}

/// What one layer did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerFact {
    /// Which layer.
    pub layer: Layer,
    /// How far it holds.
    pub state: State,
    /// Landlock's ABI version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<u32>,
    /// The errno with which the host refused, such as `EPERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<String>,
    /// What was done or could not be done, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How long applying it took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microseconds: Option<u64>,
}

impl LayerFact {
    /// A layer that holds, with nothing more to say about it.
    #[must_use]
    pub fn enforced(layer: Layer) -> Self {
        Self {
            layer,
            state: State::Enforced,
            abi: None,
            errno: None,
            detail: None,
            microseconds: None,
        }
    }
}

/// An effect that the mode promises to govern and that is not governed on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// What a command can do, or has lost, such as `unix_sockets`.
    pub effect: String,
    /// Why.
    pub reason: String,
    /// What closes it.
    pub remedy: String,
}

/// Whether anything is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Level {
    /// There are no gaps.
    Full,
    /// There are gaps, each listed.
    Partial,
}

/// How complete the enforcement of a confined run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// `full` exactly when `gaps` is empty.
    pub level: Level,
    /// The layers that the run needs, in the order in which they were applied.
    pub layers: Vec<LayerFact>,
    /// What is not governed.
    pub gaps: Vec<Gap>,
}

impl Enforcement {
    /// The enforcement with these layers and gaps; the level follows from the gaps.
    #[must_use]
    pub fn new(layers: Vec<LayerFact>, gaps: Vec<Gap>) -> Self {
        let level = if gaps.is_empty() { Level::Full } else { Level::Partial };
        Self { level, layers, gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_means_no_gap() {
        assert_eq!(Enforcement::new(vec![], vec![]).level, Level::Full);
        let gap = Gap { effect: "x".into(), reason: "y".into(), remedy: "z".into() };
        assert_eq!(Enforcement::new(vec![], vec![gap]).level, Level::Partial);
    }

    #[test]
    fn a_layer_prints_as_it_is_on_the_wire() {
        for layer in [Layer::UserNamespace, Layer::NamespaceLock, Layer::Descriptors] {
            let wire = serde_json::to_string(&layer).expect("a layer is a string");
            assert_eq!(wire, format!("\"{layer}\""));
        }
    }
}
