//! No further user namespaces: each would bring new capabilities and kernel surface.

use dsh_facts::Layer;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::error::{LayerError, Step};

const LAYER: Layer = Layer::NamespaceLock;
const MAXIMUM: &str = "/proc/sys/user/max_user_namespaces";

/// Sets the limit of the user namespace that the process has just entered to 0, and verifies that
/// the kernel now refuses another.
///
/// The file shows the limit of the reader's own user namespace, namespaces(7); the caller makes
/// sure that this is a new one, because otherwise it would be the host's.
pub(crate) fn lock() -> Result<(), LayerError> {
    std::fs::write(MAXIMUM, "0").step(LAYER, "write").map_err(|error| error.at(MAXIMUM))?;
    match unshare(CloneFlags::CLONE_NEWUSER) {
        Err(Errno::ENOSPC) => Ok(()),
        Err(errno) => Err(LayerError::new(LAYER, "verify", errno)),
        // A namespace was made that must not be possible: EEXIST says so, and no host is meant.
        Ok(()) => Err(LayerError::new(LAYER, "verify", Errno::EEXIST)),
    }
}
