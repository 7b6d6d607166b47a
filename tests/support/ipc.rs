//! System V shared memory and POSIX message queues of the host, removed when dropped.

use std::ffi::{CString, c_int};
use std::io;

use nix::libc;

/// A shared memory segment with a key.
pub(crate) struct SharedMemory {
    key: i32,
    id: c_int,
}

impl SharedMemory {
    /// A page with a new key, open to every user.
    pub(crate) fn create() -> io::Result<Self> {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o666;
        for key in 0x6473_6800.. {
            // SAFETY: shmget takes three numbers and no pointers.
            let id = unsafe { libc::shmget(key, 4096, flags) };
            if id >= 0 {
                return Ok(Self { key, id });
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EEXIST) {
                return Err(error);
            }
        }
        Err(io::Error::other("no key is free"))
    }

    /// The key by which others find it.
    pub(crate) fn key(&self) -> i32 {
        self.key
    }

    /// The identifier by which others attach it.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// How many times it has been attached and who last did so; an error when it is gone.
    pub(crate) fn use_so_far(&self) -> io::Result<(u64, i32)> {
        // SAFETY: shmid_ds is a plain structure of numbers, for which all zeros is a value.
        let mut state: libc::shmid_ds = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes exactly one shmid_ds.
        let got = unsafe { libc::shmctl(self.id, libc::IPC_STAT, &raw mut state) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((state.shm_nattch, state.shm_lpid))
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: IPC_RMID ignores the pointer.
        let _removed = unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A message queue with a name.
pub(crate) struct MessageQueue {
    name: CString,
}

impl MessageQueue {
    /// A queue of that name (without a slash), open to every user.
    pub(crate) fn create(name: &str) -> io::Result<Self> {
        let name = CString::new(format!("/{name}"))?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: mq_attr is a plain structure of numbers, for which all zeros is a value.
        let mut smallest: libc::mq_attr = unsafe { std::mem::zeroed() };
        // Queues count against a limit of the user's, by the space that they could take.
        (smallest.mq_maxmsg, smallest.mq_msgsize) = (1, 1);
        // SAFETY: the name ends with a NUL, and the kernel only reads the attributes.
        let queue = unsafe { libc::mq_open(name.as_ptr(), flags, 0o666, &raw mut smallest) };
        if queue < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `queue` was opened above and is used nowhere else.
        let _closed = unsafe { libc::mq_close(queue) };
        Ok(Self { name })
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // SAFETY: the name ends with a NUL.
        let _removed = unsafe { libc::mq_unlink(self.name.as_ptr()) };
    }
}
