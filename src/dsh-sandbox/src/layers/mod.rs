//! The layers of confinement, one file each, in the order in which they are applied.
//!
//! Each takes its part of the plan, does it, and returns what it did. A layer that fails stops the
//! run before exec.

pub(crate) mod capabilities;
pub(crate) mod carve_outs;
pub(crate) mod descriptors;
pub(crate) mod dev;
pub(crate) mod landlock;
pub(crate) mod limits;
pub(crate) mod mount;
pub(crate) mod namespace_lock;
pub(crate) mod network;
pub(crate) mod proc;
pub(crate) mod read_only;
pub(crate) mod remount;
pub(crate) mod seccomp;
pub(crate) mod tree;
pub(crate) mod user_namespace;
pub(crate) mod writable_roots;

use std::time::Instant;

use dsh_facts::{Layer, LayerFact, State};
use serde::{Deserialize, Serialize};

use crate::error::LayerError;

/// A layer that was applied. It crosses process borders, in a format that has no absent fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub(crate) layer: Layer,
    pub(crate) state: State,
    pub(crate) abi: Option<u32>,
    pub(crate) detail: Option<String>,
    pub(crate) microseconds: Option<u64>,
}

impl Applied {
    /// A layer with nothing to say but that it holds.
    pub(crate) fn plainly(layer: Layer) -> Self {
        Self { layer, state: State::Enforced, abi: None, detail: None, microseconds: None }
    }
}

impl From<Applied> for LayerFact {
    fn from(applied: Applied) -> Self {
        Self {
            state: applied.state,
            abi: applied.abi,
            detail: applied.detail,
            microseconds: applied.microseconds,
            ..Self::enforced(applied.layer)
        }
    }
}

/// Runs a layer and states that it holds, with the time it took.
pub(crate) fn enforce(
    layer: Layer,
    apply: impl FnOnce() -> Result<(), LayerError>,
) -> Result<Applied, LayerError> {
    let start = Instant::now();
    apply()?;
    let microseconds = u64::try_from(start.elapsed().as_micros()).ok();
    Ok(Applied { microseconds, ..Applied::plainly(layer) })
}
