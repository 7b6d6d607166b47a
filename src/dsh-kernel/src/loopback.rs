//! The loopback interface of the current network namespace.

use std::os::fd::AsRawFd;

use nix::Result;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Brings `lo` up in the caller's network namespace (netdevice(7), `SIOCSIFFLAGS`).
///
/// # Errors
///
/// `EPERM` without `CAP_NET_ADMIN` over the network namespace; the errno of socket(2).
pub fn bring_up() -> Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: ifreq is a plain C struct for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(|_| Errno::EOVERFLOW)?;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which outlives the call; its name is NUL-terminated
    // because only two bytes of the zeroed array were written.
    Errno::result(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })
    .map(drop)
}
