//! What of the network a command has.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network of a command, narrowest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None at all: a private network whose loopback interface is down, or no internet sockets.
    Off,
    /// A private network with its loopback interface up and every port bindable.
    Loopback,
    /// The host's.
    Host,
}

impl Network {
    /// Every value, narrowest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Loopback, Self::Host];

    /// The name, as people and profiles write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Loopback => "loopback",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Network {
    type Err = UnknownNetwork;

    fn from_str(name: &str) -> Result<Self, UnknownNetwork> {
        Self::ALL
            .into_iter()
            .find(|network| network.as_str() == name)
            .ok_or_else(|| UnknownNetwork { name: name.to_owned() })
    }
}

/// A name that is no network setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown network '{name}': use off, loopback or host")]
pub struct UnknownNetwork {
    /// What was given.
    pub name: String,
}
