//! The seccomp filter, the last layer before exec.

use std::os::fd::OwnedFd;

use dsh_facts::Layer;
use dsh_kernel::seccomp::Instruction;

use crate::error::{LayerError, Step};

/// Loads the filter. There is no way back.
pub(crate) fn load(filter: &[Instruction]) -> Result<(), LayerError> {
    dsh_kernel::seccomp::load(filter).step(Layer::Seccomp, "seccomp")
}

/// Loads a filter that hands calls over, and returns where they arrive.
pub(crate) fn load_with_listener(filter: &[Instruction]) -> Result<OwnedFd, LayerError> {
    dsh_kernel::seccomp::load_with_listener(filter).step(Layer::Observer, "seccomp listener")
}
