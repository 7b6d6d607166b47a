//! Forking, only ever from a process with one thread.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::Result;
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::Pid;

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Fork {
    /// The process that forked.
    Parent {
        /// The child's pid in the caller's pid namespace.
        child: Pid,
        /// The child, readable once it has ended.
        pidfd: OwnedFd,
    },
    /// The new process.
    Child,
}

/// Forks, with the child in new namespaces of the given kinds (`CLONE_NEW*`, clone(2); a pid
/// descriptor comes with it, Linux 5.2).
///
/// glibc's cached thread id is stale in a child of a namespace clone; nothing in this project
/// reads it.
///
/// # Errors
///
/// `EBUSY` when the process has more than one thread: a child would then be restricted to
/// async-signal-safe calls. Otherwise the errno of clone(2).
pub fn fork(namespaces: CloneFlags) -> Result<Fork> {
    if !is_single_threaded()? {
        return Err(Errno::EBUSY);
    }
    let flags = libc::c_ulong::from(namespaces.bits().cast_unsigned())
        | libc::c_ulong::from(libc::CLONE_PIDFD.cast_unsigned())
        | libc::c_ulong::from(libc::SIGCHLD.cast_unsigned());
    let mut pidfd: libc::c_int = -1;
    // SAFETY: with neither CLONE_VM nor a new stack the call copies the process, as fork does. The
    // process has one thread (checked above), so no lock is held by a thread that the child lacks
    // and the child may run any code. CLONE_PIDFD makes the kernel write one int to the third
    // argument, in the parent, which outlives the call.
    let pid = super::checked(unsafe {
        libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut pidfd, 0_usize, 0_usize)
    })?;
    if pid == 0 {
        return Ok(Fork::Child);
    }
    let pid = libc::pid_t::try_from(pid).map_err(|_| Errno::EOVERFLOW)?;
    // SAFETY: clone succeeded with CLONE_PIDFD, so the kernel stored a descriptor that is ours.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Fork::Parent { child: Pid::from_raw(pid), pidfd })
}

/// Whether this process has one thread, by the kernel's own account.
///
/// # Errors
///
/// The errno of the last resort, stat of /proc/self/task, where unshare(2) may not be called.
pub fn is_single_threaded() -> Result<bool> {
    // SAFETY: unshare takes one integer. CLONE_THREAD alone changes nothing: it succeeds in a
    // process with one thread and is EINVAL in any other (unshare(2)).
    match Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => Ok(true),
        Err(Errno::EINVAL) => Ok(false),
        // A container's filter may refuse unshare whole: count the entries then. A directory has
        // two links and one more for each subdirectory.
        Err(_) => {
            let tasks = std::fs::metadata("/proc/self/task")
                .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
            Ok(tasks.nlink() == 3)
        }
    }
}

/// Ends this process at once, without running destructors or flushing buffers that belong to the
/// process it was forked from: _exit(2).
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_two_threads_is_not_forked() {
        // The test harness itself is the second thread.
        assert_eq!(is_single_threaded(), Ok(false));
        assert_eq!(fork(CloneFlags::empty()).map(|_| ()), Err(Errno::EBUSY));
    }
}
