//! What client, warden and init say to each other, over sequenced-packet sockets.
//!
//! One warden serves many commands, so every message about a command carries its number. A plan can
//! be larger than a message: it travels in a memfd beside it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use dsh_kernel::socket;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::denied::Denied;
use crate::error::LayerError;
use crate::layers::Applied;
use crate::plan::WorldPlan;

/// The number of a command, chosen by the client.
pub(crate) type CommandId = u32;

/// Client to warden.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make the world. The first message, and answered by `World` or `Failed`.
    Make(WorldPlan),
    /// The map has been written, or could not be.
    Mapped(Result<(), LayerError>),
    /// Run the command whose plan is in the first descriptor; standard input, output and error
    /// follow, and a script if there is one.
    Run(CommandId),
    /// Send a signal to the command's process group.
    Signal(CommandId, i32),
    /// End everything that belongs to the command, at once.
    Kill(CommandId),
}

/// Warden to client.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Please write the id map of this warden.
    WriteMap,
    /// The world is made.
    World(Vec<Applied>),
    /// It is not.
    Failed(LayerError),
    /// News of a command.
    Command(CommandId, Event),
}

/// News of one command. Init and the command itself say this to the warden, the warden to the
/// client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Init has applied its layers.
    Prepared(Vec<Applied>),
    /// Every layer holds, and exec comes next.
    Confined {
        /// The command's pid in the warden's pid namespace, which is also its process group.
        pid: i32,
        /// The layers that the command put on itself.
        layers: Vec<Applied>,
    },
    /// Something was denied for the first time.
    Denied(Box<Denied>),
    /// How often each denial came, in the order in which they were told, and how many more there
    /// were that were not.
    DenialCounts(Vec<u64>, u64),
    /// A layer failed: nothing was executed.
    Failed(LayerError),
    /// The working directory cannot be entered: nothing was executed.
    WorkdirUnseen(i32),
    /// exec failed with this errno.
    NotExecuted(i32),
    /// The command stopped on this signal.
    Stopped(i32),
    /// The host has replaced a hidden or protected place while the command ran, which took the mount
    /// over it away.
    Uncovered(OsString),
    /// The command exited with this code, and nothing of it is left.
    Exited(i32),
    /// This signal ended it, and nothing of it is left.
    Killed(i32),
    /// Init ended without saying how the command did.
    Lost,
    /// The observer failed, and the command was ended with it.
    Unobserved(LayerError),
}

/// Sends a message.
pub(crate) fn send<T: Serialize>(
    to: BorrowedFd<'_>,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = postcard::to_stdvec(message).map_err(|_| Errno::EBADMSG)?;
    socket::send(to, &bytes, descriptors)
}

/// A received message with what came along.
pub(crate) struct Received<T> {
    pub(crate) message: T,
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) sender: Option<nix::unistd::Pid>,
}

/// Receives a message; none once the other end is closed.
pub(crate) fn receive<T: DeserializeOwned>(
    from: BorrowedFd<'_>,
) -> Result<Option<Received<T>>, Errno> {
    let received = match socket::receive(from) {
        // The other end went away with messages of ours unread. That is told once and first; what
        // it had said before is still there.
        Err(Errno::ECONNRESET) => socket::receive(from)?,
        other => other?,
    };
    if received.bytes.is_empty() {
        return Ok(None);
    }
    let message = postcard::from_bytes(&received.bytes).map_err(|_| Errno::EBADMSG)?;
    Ok(Some(Received { message, descriptors: received.descriptors, sender: received.sender }))
}

/// Puts a value of any size into an anonymous file.
pub(crate) fn pack<T: Serialize>(value: &T) -> Result<OwnedFd, Errno> {
    let bytes = postcard::to_stdvec(value).map_err(|_| Errno::EBADMSG)?;
    let mut file = File::from(memfd_create("dsh-plan", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(&bytes).map_err(|error| crate::error::errno_of(&error))?;
    Ok(file.into())
}

/// Reads such a value back.
pub(crate) fn unpack<T: DeserializeOwned>(file: OwnedFd) -> Result<T, Errno> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .map_err(|error| crate::error::errno_of(&error))?;
    postcard::from_bytes(&bytes).map_err(|_| Errno::EBADMSG)
}
