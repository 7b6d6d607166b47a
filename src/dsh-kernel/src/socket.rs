//! Sequenced-packet sockets that carry messages with descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::Result;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixCredentials, recvmsg, sendmsg, setsockopt, socketpair, sockopt,
};
use nix::unistd::Pid;

/// The most bytes of one message. Anything larger travels in a memfd beside it.
pub const MESSAGE_MAX: usize = 16 * 1024;
/// The most descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 8;

/// One received message.
#[derive(Debug)]
pub struct Message {
    /// Its bytes; empty when the other end has closed the socket.
    pub bytes: Vec<u8>,
    /// The descriptors that came with it, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
    /// The sender's pid as seen from here, once [`report_sender`] is on.
    pub sender: Option<Pid>,
}

/// A connected pair of sequenced-packet sockets, close-on-exec: message borders are kept, and
/// reading yields an empty message once the other end is closed.
///
/// # Errors
///
/// The errno of socketpair(2).
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
}

/// Asks the kernel to stamp each message received on `socket` with its sender's pid, translated
/// into this process's pid namespace (unix(7), `SO_PASSCRED`).
///
/// # Errors
///
/// The errno of setsockopt(2).
pub fn report_sender(socket: BorrowedFd<'_>) -> Result<()> {
    setsockopt(&socket, sockopt::PassCred, &true)
}

/// Sends one message with descriptors.
///
/// # Errors
///
/// `EMSGSIZE` above [`MESSAGE_MAX`] or [`DESCRIPTORS_MAX`]; `EPIPE` when the other end is gone (no
/// SIGPIPE is raised); otherwise the errno of sendmsg(2).
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    if bytes.len() > MESSAGE_MAX || descriptors.len() > DESCRIPTORS_MAX {
        return Err(Errno::EMSGSIZE);
    }
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    loop {
        match sendmsg::<()>(
            socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Receives one message; waits for it unless the socket is non-blocking.
///
/// # Errors
///
/// `EMSGSIZE` when a message or its descriptors were cut off; otherwise the errno of recvmsg(2).
pub fn receive(socket: BorrowedFd<'_>) -> Result<Message> {
    let mut bytes = vec![0_u8; MESSAGE_MAX];
    let mut control = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX], UnixCredentials);
    let mut descriptors = Vec::new();
    let mut sender = None;
    let (length, flags) = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match recvmsg::<()>(
            socket.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::MSG_CMSG_CLOEXEC,
        ) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(received) => {
                for part in received.cmsgs()? {
                    match part {
                        ControlMessageOwned::ScmRights(fds) => {
                            // SAFETY: the kernel has just installed these descriptors for this
                            // message; nobody else owns them.
                            descriptors.extend(
                                fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                            );
                        }
                        ControlMessageOwned::ScmCredentials(credentials) => {
                            sender = Some(Pid::from_raw(credentials.pid()));
                        }
                        _ => {}
                    }
                }
                break (received.bytes, received.flags);
            }
        }
    };
    if flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
        return Err(Errno::EMSGSIZE);
    }
    bytes.truncate(length);
    Ok(Message { bytes, descriptors, sender })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    #[test]
    fn bytes_descriptors_and_the_sender_arrive() -> Result<()> {
        let (here, there) = pair()?;
        report_sender(there.as_fd())?;
        let mut file = tempfile();
        file.write_all(b"content").expect("write");
        send(here.as_fd(), b"hello", &[file.as_fd()])?;
        let message = receive(there.as_fd())?;
        assert_eq!(message.bytes, b"hello");
        assert_eq!(message.sender, Some(nix::unistd::getpid()));
        let mut passed =
            std::fs::File::from(message.descriptors.into_iter().next().expect("one descriptor"));
        passed.rewind().expect("rewind");
        let mut text = String::new();
        passed.read_to_string(&mut text).expect("read");
        assert_eq!(text, "content");
        Ok(())
    }

    #[test]
    fn a_closed_end_reads_as_an_empty_message_and_refuses_to_send() -> Result<()> {
        let (here, there) = pair()?;
        drop(there);
        assert!(receive(here.as_fd())?.bytes.is_empty());
        assert_eq!(send(here.as_fd(), b"x", &[]), Err(Errno::EPIPE));
        Ok(())
    }

    #[test]
    fn a_message_too_long_is_refused_whole() -> Result<()> {
        let (here, _there) = pair()?;
        assert_eq!(send(here.as_fd(), &vec![0; MESSAGE_MAX + 1], &[]), Err(Errno::EMSGSIZE));
        Ok(())
    }

    fn tempfile() -> std::fs::File {
        nix::sys::memfd::memfd_create("test", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)
            .map(std::fs::File::from)
            .expect("memfd")
    }
}
