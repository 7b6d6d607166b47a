//! Signal state, which exec keeps in part.

use nix::Result;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

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
        // SIGKILL and SIGSTOP cannot be set and the two that glibc keeps for itself are refused:
        // those errors say that there was nothing to reset.
        // SAFETY: the default disposition runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}
