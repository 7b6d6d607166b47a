//! What lives on the host besides files: a process, listeners, IPC objects, a terminal. No attack
//! may reach any of them.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{OpenptyResult, openpty};

use crate::support::binaries::Binaries;
use crate::support::ipc::{MessageQueue, SharedMemory};
use crate::support::persona::Persona;
use crate::victim::Victim;

/// Numbers the tests of this process, for names that are not in a directory of the test's own.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Bystanders {
    /// A name that nothing else on the host has.
    unique: String,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    named: UnixListener,
    memory: SharedMemory,
    _queue: MessageQueue,
    terminal: OpenptyResult,
    terminal_path: PathBuf,
    victim: Victim,
}

impl Bystanders {
    pub(crate) fn gather(files: &Path, persona: Persona, binaries: &Binaries) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("dsh-escape-{}-{number}", std::process::id());
        let abstract_name = |kind| SocketAddr::from_abstract_name(format!("{unique}-{kind}"));
        let named = UnixListener::bind(files.join("socket"))?;
        std::fs::set_permissions(files.join("socket"), PermissionsExt::from_mode(0o777))?;
        let terminal = openpty(None, None)?;
        let terminal_path = nix::unistd::ttyname(&terminal.slave)?;
        persona.own(&terminal_path)?;
        let bystanders = Self {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp: UdpSocket::bind("127.0.0.1:0")?,
            stream: UnixListener::bind_addr(&abstract_name("stream")?)?,
            datagram: UnixDatagram::bind_addr(&abstract_name("datagram")?)?,
            named,
            memory: SharedMemory::create()?,
            _queue: MessageQueue::create(&unique)?,
            unique,
            terminal,
            terminal_path,
            victim: Victim::start(persona, binaries)?,
        };
        bystanders.tcp.set_nonblocking(true)?;
        bystanders.udp.set_nonblocking(true)?;
        bystanders.stream.set_nonblocking(true)?;
        bystanders.datagram.set_nonblocking(true)?;
        bystanders.named.set_nonblocking(true)?;
        Ok(bystanders)
    }

    pub(crate) fn placeholders(&self) -> Vec<(&'static str, String)> {
        let port = |address: io::Result<std::net::SocketAddr>| {
            address.map(|address| address.port().to_string()).unwrap_or_default()
        };
        vec![
            ("unique", self.unique.clone()),
            ("tcp", port(self.tcp.local_addr())),
            ("udp", port(self.udp.local_addr())),
            ("shm-key", self.memory.key().to_string()),
            ("shm-id", self.memory.id().to_string()),
            ("pid", self.victim.id().to_string()),
            ("terminal", self.terminal_path.display().to_string()),
        ]
    }

    /// The process group of the host's process.
    pub(crate) fn group(&self) -> i32 {
        self.victim.id().cast_signed()
    }

    pub(crate) fn terminal(&self) -> io::Result<OwnedFd> {
        self.terminal.slave.try_clone()
    }

    /// What somebody has done to them.
    pub(crate) fn harm(&mut self) -> io::Result<Vec<String>> {
        let mut harm = Vec::new();
        let mut buffer = [0; 64];
        let contacts = [
            ("TCP listener", self.tcp.accept().map(drop)),
            ("UDP socket", self.udp.recv_from(&mut buffer).map(drop)),
            ("abstract listener", self.stream.accept().map(drop)),
            ("abstract datagram socket", self.datagram.recv_from(&mut buffer).map(drop)),
            ("socket with a file", self.named.accept().map(drop)),
        ];
        for (name, contact) in contacts {
            if !matches!(&contact, Err(error) if error.kind() == ErrorKind::WouldBlock) {
                harm.push(format!("the host's {name} was reached: {contact:?}"));
            }
        }
        match self.memory.use_so_far() {
            Ok((0, 0)) => {}
            used => harm.push(format!("the host's shared memory was reached: {used:?}")),
        }
        // Whatever is written to the terminal, or put into its input, comes out at the other end.
        let mut master = [PollFd::new(self.terminal.master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut master, PollTimeout::ZERO)? != 0 {
            harm.push("the host's terminal has output".to_owned());
        }
        harm.extend(self.victim.harm()?);
        for scratch in ["/tmp", "/dev/shm"] {
            let path = Path::new(scratch).join(&self.unique);
            if path.symlink_metadata().is_ok() {
                harm.push(format!("{} is on the host", path.display()));
            }
        }
        Ok(harm)
    }
}
