//! The seccomp filter, the last layer before exec.

use dsh_facts::Layer;
use dsh_kernel::seccomp::Instruction;

use crate::error::{LayerError, Step};

/// Loads the filter. There is no way back.
pub(crate) fn load(filter: &[Instruction]) -> Result<(), LayerError> {
    dsh_kernel::seccomp::load(filter).step(Layer::Seccomp, "seccomp")
}
