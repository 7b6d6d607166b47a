//! Who refuses a system call: a filter around this process, or the kernel itself.
//!
//! A filter answers before the kernel looks at anything. So the same call with arguments that are
//! wrong on every kernel, and with the flags that filters look at, tells them apart: the kernel
//! says what is wrong with them before it asks whether the caller may.

use libc::{c_long, c_uint, c_ulong};
use nix::errno::Errno;
use nix::sched::CloneFlags;

use crate::process::exit_now;

/// A call that makes namespaces or mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// unshare(2) with these flags.
    Unshare(CloneFlags),
    /// clone(2) with these flags.
    Clone(CloneFlags),
    /// mount(2).
    Mount,
    /// open_tree(2).
    OpenTree,
    /// mount_setattr(2).
    MountSetattr,
}

/// The errno with which a filter refuses the call; none when the call comes to the kernel.
#[must_use]
pub fn filtered(call: Call) -> Option<Errno> {
    match answer(call) {
        Errno::EINVAL | Errno::EFAULT => None,
        errno => Some(errno),
    }
}

/// The answer to the call with wrong arguments: `EINVAL` or `EFAULT` by the kernel, `ENOSYS` by one
/// without the call.
fn answer(call: Call) -> Errno {
    const ALL: c_uint = !0;
    let nowhere = std::ptr::null::<libc::c_void>();
    let returned: c_long = match call {
        Call::Unshare(flags) => {
            // unshare does not know tracing.
            let flags = flags.bits() | libc::CLONE_PTRACE;
            // SAFETY: unshare takes one integer, and a flag that it does not know stops it.
            unsafe { libc::syscall(libc::SYS_unshare, flags) }
        }
        Call::Clone(flags) => {
            // A thread that does not share the signal handlers does not exist.
            let flags = c_ulong::from((flags.bits() | libc::CLONE_THREAD).cast_unsigned());
            // SAFETY: with neither CLONE_VM nor a new stack this would copy the process, as fork
            // does; the flags contradict each other, so it does nothing.
            unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) }
        }
        Call::Mount => {
            let flags = libc::MS_BIND;
            // SAFETY: null is no path, and the kernel reads nothing else.
            unsafe { libc::syscall(libc::SYS_mount, nowhere, nowhere, nowhere, flags, nowhere) }
        }
        Call::OpenTree => {
            // SAFETY: flags that the call does not know stop it before it reads the path.
            unsafe { libc::syscall(libc::SYS_open_tree, -1, nowhere, ALL) }
        }
        Call::MountSetattr => {
            // SAFETY: flags that the call does not know stop it before it reads anything.
            unsafe { libc::syscall(libc::SYS_mount_setattr, -1, nowhere, ALL, nowhere, 0_usize) }
        }
    };
    match Errno::result(returned) {
        // No kernel carries this out; a child of one that did would end here.
        Ok(0) if matches!(call, Call::Clone(_)) => exit_now(0),
        Ok(_) => Errno::EINVAL,
        Err(errno) => errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_itself_names_what_is_wrong() {
        let every = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
        let calls = [
            Call::Unshare(every),
            Call::Clone(every),
            Call::Clone(CloneFlags::CLONE_NEWPID),
            Call::Mount,
            Call::OpenTree,
            Call::MountSetattr,
        ];
        for call in calls {
            // Tests may run in a container, or on a kernel without the newer calls.
            let refused = filtered(call);
            let expected = [None, Some(Errno::EPERM), Some(Errno::EACCES), Some(Errno::ENOSYS)];
            assert!(expected.contains(&refused), "{call:?}: {refused:?}");
        }
    }
}
