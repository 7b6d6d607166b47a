//! Capabilities: dropped from every set, and from the bounding set, so that no exec brings them
//! back.

use caps::{CapSet, Capability, CapsHashSet};
use dsh_facts::Layer;
use nix::errno::Errno;

use crate::error::LayerError;

const LAYER: Layer = Layer::Capabilities;

/// The capability that init keeps and no command has: with it, no command may trace init, whatever
/// its user id (ptrace(2) compares the permitted sets).
const INIT_KEEPS: Capability = Capability::CAP_SYS_PTRACE;

/// Leaves only `kept` in the bounding set. Needs `CAP_SETPCAP`.
pub(crate) fn drop_bounding(kept: &[Capability]) -> Result<(), LayerError> {
    for capability in caps::all() {
        if kept.contains(&capability) {
            continue;
        }
        match caps::drop(None, CapSet::Bounding, capability) {
            Ok(()) => {}
            // A capability that this kernel does not have.
            Err(_) if Errno::last() == Errno::EINVAL => {}
            Err(_) => return Err(failed("bounding set")),
        }
    }
    Ok(())
}

/// Leaves only `kept`, by number, in the permitted and effective sets, as far as the process has
/// them, and nothing in the inheritable and ambient sets.
pub(crate) fn keep(kept: &[u8]) -> Result<(), LayerError> {
    let permitted = read(CapSet::Permitted)?;
    let kept: CapsHashSet =
        permitted.iter().copied().filter(|one| kept.contains(&one.index())).collect();
    set(&kept)
}

/// Leaves init one capability more than its command will have.
pub(crate) fn keep_for_init(command: &[u8]) -> Result<(), LayerError> {
    let kept: Vec<u8> = command.iter().copied().chain([INIT_KEEPS.index()]).collect();
    keep(&kept)
}

fn read(set: CapSet) -> Result<CapsHashSet, LayerError> {
    caps::read(None, set).map_err(|_| failed("capget"))
}

fn set(kept: &CapsHashSet) -> Result<(), LayerError> {
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new())
        .and_then(|()| caps::set(None, CapSet::Effective, kept))
        .and_then(|()| caps::set(None, CapSet::Permitted, kept))
        .map_err(|_| failed("capset"))?;
    // The kernel takes ambient capabilities away with the inheritable ones (capabilities(7)); this
    // says so once more where the kernel knows them (Linux 4.3).
    caps::clear(None, CapSet::Ambient).map_err(|_| failed("ambient set"))
}

/// The crate's errors are text only (0.5.6); the errno of the call that it has just made is still
/// there.
fn failed(step: &str) -> LayerError {
    LayerError::new(LAYER, step, Errno::last())
}
