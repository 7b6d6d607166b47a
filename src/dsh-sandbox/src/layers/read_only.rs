//! One mount made read-only, on any kernel.

use std::path::Path;

use dsh_kernel::mount::{self, Attributes, Reach};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;

use crate::error::LayerError;
use crate::layers::remount;
use crate::layers::tree::LAYER;

/// Makes the mount at a place read-only and private, on any kernel.
pub(crate) fn set_read_only(place: &Path, flags: u64) -> Result<(), LayerError> {
    let attributes = Attributes { set: flags, private: true };
    match mount::set_attributes(AT_FDCWD, place, Reach::One, attributes) {
        Ok(()) => Ok(()),
        // Below Linux 5.12.
        Err(Errno::ENOSYS) => remount::add_flags_below(place, flags),
        Err(errno) => Err(LayerError::new(LAYER, "mount_setattr", errno).at(place)),
    }
}
