//! Connecting a socket to an address whose bytes come from elsewhere.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::Result;
use nix::errno::Errno;

/// connect(2) with the address as it is: the kernel judges it.
///
/// # Errors
///
/// `EINVAL` for an address longer than the kernel takes; otherwise that of the call.
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<()> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads `length` bytes, which `address` has, and interprets them itself.
    Errno::result(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) })
        .map(drop)
}

/// The socket's address family, such as `AF_UNIX`: getsockopt(2), `SO_DOMAIN`.
///
/// # Errors
///
/// `ENOTSOCK` for what is no socket.
pub fn domain(socket: BorrowedFd<'_>) -> Result<i32> {
    let mut domain: libc::c_int = 0;
    let mut length: libc::socklen_t = 4;
    // SAFETY: the kernel writes at most `length` bytes, the size of an int, and the length.
    Errno::result(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_DOMAIN,
            (&raw mut domain).cast(),
            &raw mut length,
        )
    })?;
    Ok(domain)
}

/// Whether a blocking call on the socket gives up after a while: getsockopt(2), `SO_SNDTIMEO`.
///
/// # Errors
///
/// `ENOTSOCK` for what is no socket.
pub fn has_send_timeout(socket: BorrowedFd<'_>) -> Result<bool> {
    let timeout = nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::SendTimeout)?;
    Ok(timeout.tv_sec() != 0 || timeout.tv_usec() != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_unix_socket_says_so_and_refuses_a_short_address() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(super::domain(one.as_fd()), Ok(libc::AF_UNIX));
        assert_eq!(super::has_send_timeout(one.as_fd()), Ok(false));
        assert_eq!(super::connect(one.as_fd(), &[1]), Err(nix::errno::Errno::EINVAL));
    }
}
