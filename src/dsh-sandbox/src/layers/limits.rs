//! Resource limits: no core dumps, and a bound on processes.

use dsh_facts::Layer;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{LayerError, Step};

const LAYER: Layer = Layer::Limits;

/// Sets the limits of the calling process. A core dump would be written by the kernel, or handed to
/// a program on the host (core(5)).
pub(crate) fn set(processes: Option<u64>) -> Result<(), LayerError> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).step(LAYER, "RLIMIT_CORE")?;
    if let Some(processes) = processes {
        let (_, most) = getrlimit(Resource::RLIMIT_NPROC).step(LAYER, "RLIMIT_NPROC")?;
        let limit = processes.min(most);
        setrlimit(Resource::RLIMIT_NPROC, limit, limit).step(LAYER, "RLIMIT_NPROC")?;
    }
    Ok(())
}
