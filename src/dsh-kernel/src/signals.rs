//! Signal state, which exec keeps in part.

use nix::Result;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

/// As large as the kernel's own `struct sigaction` of any architecture here: handler, flags,
/// restorer, mask.
type KernelSigaction = [u64; 4];

static DEFAULT: KernelSigaction = [0; 4];

/// Resets every disposition to the default and unblocks every signal.
///
/// Ignored signals stay ignored across exec(2), and Rust's runtime ignores SIGPIPE: without this
/// `yes | head -1` would never end.
///
/// # Errors
///
/// The errno of sigprocmask(2).
pub fn reset() -> Result<()> {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the kernel reads one sigaction, which outlives the call; all zeroes is the
        // default disposition without flags, which runs no code of ours. The call itself and not
        // glibc's, which keeps two signals to itself. SIGKILL and SIGSTOP cannot be set: that
        // error says that there was nothing to reset.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const DEFAULT,
                std::ptr::null_mut::<KernelSigaction>(),
                size_of::<u64>(),
            )
        };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}
