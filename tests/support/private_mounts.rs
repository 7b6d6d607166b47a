//! Changes to the host's mounts that only one test sees.

use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Does the work in a thread with a mount namespace of its own, from which nothing propagates; the
/// programs that it starts are in there too. Needs root.
pub(crate) fn with_private_mounts<T: Send>(
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
            work()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the work panicked")))
    })
}
