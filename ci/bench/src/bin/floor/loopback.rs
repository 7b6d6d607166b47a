//! A new network namespace has `lo` alone, and that is down.

use std::ffi::c_short;

use crate::sys;

/// `struct ifreq` as SIOCSIFFLAGS reads it. Padded to the size that the kernel copies.
#[repr(C)]
pub(crate) struct InterfaceFlags {
    name: [u8; 16],
    flags: c_short,
    rest: [u8; 22],
}

const IFF_UP: c_short = 1;

pub(crate) fn up() {
    let mut request = InterfaceFlags { name: [0; 16], flags: IFF_UP, rest: [0; 22] };
    request.name[..2].copy_from_slice(b"lo");
    sys::set_interface_flags(&request);
}
