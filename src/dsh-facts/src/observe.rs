//! How much of what a command does is watched for denials.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is watched, least first. Each level holds those before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Observe {
    /// Nothing. Unix sockets are closed by refusing to make them.
    Off,
    /// Refused system calls and connections.
    Sockets,
    /// Calls that create, open for writing, change, remove, rename or link by path.
    Paths,
    /// Changes of metadata through descriptors as well.
    All,
}

impl Observe {
    /// Every value, least first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Sockets, Self::Paths, Self::All];

    /// The name, as people and profiles write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Sockets => "sockets",
            Self::Paths => "paths",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Observe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Observe {
    type Err = UnknownObserve;

    fn from_str(name: &str) -> Result<Self, UnknownObserve> {
        Self::ALL
            .into_iter()
            .find(|observe| observe.as_str() == name)
            .ok_or_else(|| UnknownObserve { name: name.to_owned() })
    }
}

/// A name that is no level of observation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown level '{name}': use all, paths, sockets or off")]
pub struct UnknownObserve {
    /// What was given.
    pub name: String,
}
