//! A new network namespace has `lo` alone, and that is down.

use std::ffi::c_short;

use crate::sys::{self, InterfaceFlags};

const IFF_UP: c_short = 1;

pub(crate) fn up() {
    let mut request = InterfaceFlags { name: [0; 16], flags: IFF_UP, rest: [0; 22] };
    request.name[..2].copy_from_slice(b"lo");
    sys::set_interface_flags(&request);
}
