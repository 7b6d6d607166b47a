//! File systems whose servers do not answer: whoever asks them anything waits.
//!
//! Each ends with its guard. Closing the last descriptor of a FUSE connection aborts it, which
//! wakes everybody who waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};

/// The name that makes a server fall silent: it is the last that it answers for.
pub(crate) const LAST: &str = "last";

/// A FUSE file system that nobody has ever answered for.
pub(crate) struct Unread {
    _connection: File,
}

impl Unread {
    /// Mounts it, for every user.
    pub(crate) fn mount(place: &Path) -> io::Result<Self> {
        Ok(Self { _connection: connect(place, 0)? })
    }
}

/// A FUSE file system of empty directories, whose server answers until it is asked for [`LAST`].
/// From then on it takes requests and keeps them: not even a signal ends the wait for those.
pub(crate) struct Swallowing {
    release: PathBuf,
    server: Option<JoinHandle<bool>>,
}

impl Swallowing {
    /// Mounts it, for every user. The server goes away once there is a file `release`, which lies
    /// elsewhere; or in the end, so that a test that fails hangs nobody for good.
    pub(crate) fn mount(place: &Path, release: &Path) -> io::Result<Self> {
        let connection = connect(place, nix::libc::O_NONBLOCK)?;
        let path = release.to_owned();
        let server = std::thread::spawn(move || serve(connection, &path));
        Ok(Self { release: release.to_owned(), server: Some(server) })
    }

    /// Sends the server away; whether it was there until now.
    pub(crate) fn end(mut self) -> io::Result<bool> {
        self.release()
    }

    fn release(&mut self) -> io::Result<bool> {
        fs::write(&self.release, "")?;
        let server = self.server.take().map(JoinHandle::join);
        Ok(server.is_some_and(|stayed| stayed.unwrap_or(false)))
    }
}

impl Drop for Swallowing {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

fn connect(place: &Path, flags: i32) -> io::Result<File> {
    let connection =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/fuse")?;
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", connection.as_raw_fd());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("dead"), place, Some("fuse"), flags, Some(options.as_str()))?;
    Ok(connection)
}

/// Longer than any test takes, and shorter than one is waited for.
const LIFE: Duration = Duration::from_secs(25);

/// Serves; whether until it was released.
fn serve(mut connection: File, release: &Path) -> bool {
    const PAUSE: Duration = Duration::from_millis(1);
    let end = Instant::now() + LIFE;
    let mut silent = false;
    let mut request = vec![0; 1 << 17];
    while Instant::now() < end {
        match connection.read(&mut request) {
            Ok(length) if !silent => {
                let request = &request[..length];
                silent = asks_for_last(request);
                if let Some(reply) = reply(request) {
                    let _ = connection.write_all(&reply);
                }
            }
            Ok(_) => {}
            Err(_) if release.exists() => return true,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    false
}

/// fuse_in_header of linux/fuse.h: length, operation, request.
const HEADER: usize = 40;
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
/// Operations that are not answered: FORGET, INTERRUPT, BATCH_FORGET.
const UNANSWERED: [u32; 3] = [2, 36, 42];

fn operation(request: &[u8]) -> u32 {
    request.get(4..8).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn asks_for_last(request: &[u8]) -> bool {
    operation(request) == LOOKUP && request[HEADER..].starts_with(LAST.as_bytes())
}

fn reply(request: &[u8]) -> Option<Vec<u8>> {
    let operation = operation(request);
    if UNANSWERED.contains(&operation) {
        return None;
    }
    // Nothing is to be kept for any time: whoever wants to know asks again.
    let (error, body): (i32, Vec<u8>) = match operation {
        // Protocol 7.31 without any extra.
        INIT => (0, bytes(&[7, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        GETATTR => (0, [bytes(&[0; 4]), directory(1)].concat()),
        LOOKUP if asks_for_last(request) => (-nix::libc::ENOENT, Vec::new()),
        LOOKUP => (0, [bytes(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), directory(2)].concat()),
        OPENDIR => (0, bytes(&[0; 4])),
        _ => (-nix::libc::ENOSYS, Vec::new()),
    };
    let length = u32::try_from(16 + body.len()).ok()?;
    let mut reply = length.to_ne_bytes().to_vec();
    reply.extend(error.to_ne_bytes());
    reply.extend(&request[8..16]);
    reply.extend(body);
    Some(reply)
}

/// fuse_attr of a directory that everybody may enter.
fn directory(inode: u32) -> Vec<u8> {
    const MODE: usize = 15;
    let mut words = [0; 22];
    words[0] = inode;
    words[MODE] = 0o040_755;
    words[MODE + 1] = 2;
    bytes(&words)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A direct automount whose daemon never mounts anything.
pub(crate) struct DeadAutomount {
    _requests: (OwnedFd, OwnedFd),
    daemon: Child,
}

impl DeadAutomount {
    /// Mounts the trigger.
    pub(crate) fn mount(place: &Path) -> io::Result<Self> {
        let requests = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        // The daemon is known by its process group; everybody else has to wait.
        let daemon = Command::new("sleep").arg("300").process_group(0).spawn()?;
        let options = format!(
            "fd={},pgrp={},minproto=5,maxproto=5,direct",
            requests.1.as_raw_fd(),
            daemon.id()
        );
        let guard = Self { _requests: requests, daemon };
        mount(Some("dead"), place, Some("autofs"), MsFlags::empty(), Some(options.as_str()))?;
        Ok(guard)
    }
}

impl Drop for DeadAutomount {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
