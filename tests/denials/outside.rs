//! Files of the host that a command would like to change.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use nix::sys::stat::Mode;

use crate::support::caller::Caller;
use crate::support::problems::Problems;
use crate::support::snapshot::Snapshot;

/// A directory of the caller's outside the workspace, `@/outside`: only the sandbox keeps the caller
/// from changing it.
pub(crate) struct Outside {
    path: PathBuf,
    before: Snapshot,
}

impl Outside {
    /// Makes it, with a `file`, an empty directory, a full one, a symbolic link to it and a fifo.
    pub(crate) fn of(caller: &Caller) -> io::Result<Self> {
        let path = caller.make_dir("outside")?;
        for directory in ["outside/empty", "outside/full"] {
            caller.make_dir(directory)?;
        }
        for file in ["outside/file", "outside/other", "outside/full/file"] {
            caller.make_file(file, "the host's\n")?;
        }
        symlink("full", path.join("link"))?;
        nix::unistd::mkfifo(&path.join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR)?;
        for name in ["link", "fifo"] {
            caller.persona().own(&path.join(name))?;
        }
        let before = Snapshot::of(&path)?;
        Ok(Self { path, before })
    }

    /// As it is now, to be compared with later.
    pub(crate) fn again(self) -> io::Result<Self> {
        let before = Snapshot::of(&self.path)?;
        Ok(Self { before, ..self })
    }

    /// It must be as it was.
    pub(crate) fn check(&self, problems: &mut Problems) -> io::Result<()> {
        let changes = Snapshot::of(&self.path)?.changes_since(&self.before);
        problems.equal("changes of the host", changes, Vec::new());
        Ok(())
    }
}

/// A socket of the host's in the caller's home, `@/home/socket`: only the sandbox keeps the caller from
/// it.
pub(crate) struct HostSocket(UnixListener);

impl HostSocket {
    /// Listens.
    pub(crate) fn of(caller: &Caller) -> io::Result<Self> {
        let path = caller.path("home/socket");
        let socket = UnixListener::bind(&path)?;
        caller.persona().own(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Nobody has connected.
    pub(crate) fn check_unreached(&self, problems: &mut Problems) {
        problems.check(self.0.accept().is_err(), || "the host's socket was reached".to_owned());
    }
}

/// Names of the host's own that must not come into being.
pub(crate) fn check_absent(problems: &mut Problems, paths: &[&str]) {
    for path in paths {
        let there = fs::symlink_metadata(path).is_ok();
        problems.check(!there, || format!("{path} is there"));
    }
}
