//! Changing metadata in a caller's place, on a file that is open already, so that no name can lead
//! elsewhere in between.

use std::ffi::CString;
use std::os::fd::BorrowedFd;

use dsh_kernel::metadata;
use nix::errno::Errno;

use super::attempt::Change;
use super::view::link_of;

/// Makes the change, with the ids of the calling process.
///
/// # Errors
///
/// Those of the call.
pub(super) fn perform(change: &Change, file: BorrowedFd<'_>) -> Result<(), Errno> {
    let link = link_of(file).ok_or(Errno::EBADF)?;
    let attribute = |name: &[u8]| CString::new(name).map_err(|_| Errno::ERANGE);
    match change {
        Change::Mode(mode) => metadata::set_mode(&link, mode & 0o7777),
        Change::Owner(uid, gid) => metadata::set_owner(file, *uid, *gid),
        Change::Times(times) => metadata::set_times(file, *times),
        Change::SetAttribute { name, value, flags } => {
            metadata::set_attribute(&link, &attribute(name)?, value, *flags)
        }
        Change::RemoveAttribute(name) => metadata::remove_attribute(&link, &attribute(name)?),
    }
}
