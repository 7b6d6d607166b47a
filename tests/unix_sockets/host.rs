//! Who listens on the host. Nobody accepts before the end of a test: who has connected waits, and is
//! counted then.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept, bind, listen, socket,
};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::support::caller::Caller;
use crate::support::problems::Problems;

/// A socket of the host's, open to every user.
pub(crate) struct Listener {
    socket: OwnedFd,
    /// Its name: a path, or an abstract name that begins with `@`.
    pub(crate) name: String,
    /// As the probe calls it.
    pub(crate) kind: &'static str,
}

const TYPES: [(&str, SockType); 2] =
    [("STREAM", SockType::Stream), ("SEQPACKET", SockType::SeqPacket)];

impl Listener {
    /// Listens at a path.
    pub(crate) fn at(path: &Path, kind: &'static str) -> io::Result<Self> {
        let listener = Self::bound(&UnixAddr::new(path)?, path.display().to_string(), kind)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
        Ok(listener)
    }

    /// Listens at an abstract name, which has no file.
    pub(crate) fn without_file(name: &str, kind: &'static str) -> io::Result<Self> {
        Self::bound(&UnixAddr::new_abstract(name.as_bytes())?, format!("@{name}"), kind)
    }

    fn bound(address: &UnixAddr, name: String, kind: &'static str) -> io::Result<Self> {
        let (_, of_type) = TYPES.iter().find(|(known, _)| *known == kind).unwrap_or(&TYPES[0]);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, *of_type, flags, None)?;
        bind(socket.as_raw_fd(), address)?;
        listen(&socket, Backlog::new(100)?)?;
        Ok(Self { socket, name, kind })
    }

    /// How many have connected.
    pub(crate) fn connected(&self) -> usize {
        std::iter::from_fn(|| accept(&self.socket).ok()).count()
    }

    /// Nobody has.
    pub(crate) fn check_unreached(&self, problems: &mut Problems) {
        let connected = self.connected();
        problems.equal(&format!("connections to {}", self.name), connected, 0);
    }

    /// The probe's attempt to connect to it.
    pub(crate) fn attempt(&self) -> String {
        format!("unix-connect {} {}", self.name, self.kind)
    }
}

/// Listeners where a host has some: in /run, which takes root, and in a home directory.
pub(crate) struct Host {
    pub(crate) listeners: Vec<Listener>,
    _run: Option<TempDir>,
}

impl Host {
    /// Starts them.
    pub(crate) fn of(caller: &Caller) -> io::Result<Self> {
        let mut directories: Vec<PathBuf> = vec![caller.path("home")];
        let run = geteuid().is_root().then(|| {
            let run = tempfile::Builder::new().prefix("dsh-test-").tempdir_in("/run")?;
            fs::set_permissions(&run, fs::Permissions::from_mode(0o755))?;
            Ok::<_, io::Error>(run)
        });
        let run = run.transpose()?;
        directories.extend(run.as_ref().map(|run| run.path().to_owned()));
        let mut listeners = Vec::new();
        for directory in directories {
            for (kind, _) in TYPES {
                let path = directory.canonicalize()?.join(kind.to_lowercase());
                let listener = Listener::at(&path, kind)?;
                caller.persona().own(&path)?;
                listeners.push(listener);
            }
        }
        Ok(Self { listeners, _run: run })
    }

    /// Nobody has reached any of them.
    pub(crate) fn check_unreached(&self, problems: &mut Problems) {
        for listener in &self.listeners {
            listener.check_unreached(problems);
        }
    }
}
