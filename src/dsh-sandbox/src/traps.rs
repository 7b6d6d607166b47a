//! The table of calls that the filter hands to the observer, and what of it a run needs.

use dsh_facts::Observe;
use serde::Deserialize;

use crate::error::RequestError;
use crate::seccomp_rules::{Alternative, Call, Situation};

const TRAPS: &str = include_str!("../sandbox-profiles/traps.toml");

/// The table as `sandbox-profiles/traps.toml` states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traps {
    #[serde(rename = "trap")]
    traps: Vec<Trap>,
}

/// One trap: these calls, under these conditions, are handed to the observer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trap {
    /// The reason, for whoever reads the file.
    #[serde(rename = "why")]
    _why: String,
    calls: Vec<Call>,
    /// The least level that needs it.
    observe: Option<Observe>,
    /// The situation in which every level needs it.
    only: Option<Situation>,
    #[serde(default)]
    when: Vec<Alternative>,
}

/// One call of one trap that a run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trapped<'a> {
    /// The call.
    pub(crate) number: u32,
    /// Alternatives, each a list of conditions that must all hold; any call when empty.
    pub(crate) when: &'a [Alternative],
}

impl Traps {
    /// The table.
    ///
    /// # Errors
    ///
    /// [`RequestError::BuiltIn`]: the build embeds a file that does not parse.
    pub(crate) fn table() -> Result<Self, RequestError> {
        toml::from_str(TRAPS).map_err(|error| RequestError::BuiltIn {
            name: "traps",
            message: error.message().to_owned(),
        })
    }

    /// What a run at this level, in these situations, needs.
    pub(crate) fn select<'a>(
        &'a self,
        level: Observe,
        situations: &'a [Situation],
    ) -> impl Iterator<Item = Trapped<'a>> {
        self.traps
            .iter()
            .filter(move |trap| {
                trap.observe.is_some_and(|least| least <= level)
                    || trap.only.is_some_and(|situation| situations.contains(&situation))
            })
            .flat_map(|trap| {
                let numbers = trap.calls.iter().filter_map(|call| call.number);
                numbers.map(|number| Trapped { number, when: &trap.when })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_holds_those_before_it() {
        let traps = Traps::table().expect("the embedded table parses");
        let count = |level| traps.select(level, &[]).count();
        assert_eq!(count(Observe::Sockets), 1);
        assert!(count(Observe::Sockets) < count(Observe::Paths));
        assert!(count(Observe::Paths) < count(Observe::All));
        let metadata = traps.select(Observe::Sockets, &[Situation::MetadataPerformed]).count();
        assert!(metadata > 10, "{metadata}");
    }
}
