//! The denials of one command: each kind is told once and then counted, up to a limit.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use dsh_facts::DENIALS_MAX;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::denied::{Denied, Refused};
use crate::protocol::{self, Event};

/// What an observer keeps. The counts are in a file that the warden shares, so that they are known
/// however the observer ends.
pub(super) struct Record {
    seen: HashMap<Refused, usize>,
    counts: Vec<u64>,
    dropped: u64,
    shared: File,
    reports: OwnedFd,
}

impl Record {
    pub(super) fn new(shared: OwnedFd, reports: OwnedFd) -> Self {
        Self {
            seen: HashMap::new(),
            counts: Vec::new(),
            dropped: 0,
            shared: shared.into(),
            reports,
        }
    }

    /// Records a denial; what is known about its program is asked for only where it is new.
    ///
    /// # Errors
    ///
    /// That of telling it, or of counting.
    pub(super) fn add(
        &mut self,
        what: Refused,
        details: impl FnOnce(&Refused) -> (OsString, i32, Option<String>),
    ) -> Result<(), Errno> {
        if let Some(index) = self.seen.get(&what).copied() {
            self.counts[index] += 1;
            return self.share(index, self.counts[index]);
        }
        if self.seen.len() == DENIALS_MAX {
            self.dropped += 1;
            return self.share(DENIALS_MAX, self.dropped);
        }
        let (program, pid, remedy) = details(&what);
        let index = self.counts.len();
        self.seen.insert(what.clone(), index);
        self.counts.push(1);
        self.share(index, 1)?;
        let event = Event::Denied(Box::new(Denied { what, program, pid, remedy }));
        match protocol::send(self.reports.as_fd(), &event, &[]) {
            // The warden has been killed, and the command is about to be.
            Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
            sent => sent,
        }
    }

    /// Where denials are told; hung up once the warden is gone.
    pub(super) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    fn share(&self, index: usize, count: u64) -> Result<(), Errno> {
        let at = index as u64 * 8;
        self.shared.write_all_at(&count.to_ne_bytes(), at).map_err(|e| crate::error::errno_of(&e))
    }
}

/// The file for the counts, for the warden to make and to read.
///
/// # Errors
///
/// That of memfd_create(2).
pub(crate) fn shared_counts() -> Result<OwnedFd, Errno> {
    memfd_create("dsh-denials", MFdFlags::MFD_CLOEXEC)
}

/// What is in it: the counts of the denials in their order, and how many were dropped.
pub(crate) fn read_counts(shared: &OwnedFd) -> (Vec<u64>, u64) {
    let read = |shared: &OwnedFd| {
        let file = File::from(shared.try_clone()?);
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, 0)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let bytes = read(shared).unwrap_or_default();
    let mut counts: Vec<u64> =
        bytes.chunks_exact(8).map(|count| count.try_into().map_or(0, u64::from_ne_bytes)).collect();
    let dropped = counts.get(DENIALS_MAX).copied().unwrap_or(0);
    counts.truncate(DENIALS_MAX);
    (counts, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_facts::{Access, Layer};
    use dsh_kernel::socket;

    fn refused(path: usize) -> Refused {
        Refused {
            operation: "open".to_owned(),
            access: Some(Access::Write),
            path: Some(format!("/etc/{path}").into()),
            address: None,
            errno: 30,
            layer: Layer::Mount,
        }
    }

    #[test]
    fn each_kind_is_told_once_and_counted_up_to_the_limit() {
        let (here, there) = socket::pair().expect("a pair");
        let shared = shared_counts().expect("a memfd");
        let mut record = Record::new(shared.try_clone().expect("dup"), there);
        let mut add = |path| {
            record.add(refused(path), |_| ("sh".into(), 7, None)).expect("recorded");
        };
        add(0);
        add(0);
        let told = protocol::receive::<Event>(here.as_fd()).expect("told").expect("an event");
        assert!(matches!(told.message, Event::Denied(denied) if denied.pid == 7));
        for path in 1..DENIALS_MAX + 5 {
            add(path);
            if path < DENIALS_MAX {
                protocol::receive::<Event>(here.as_fd()).expect("told");
            }
        }
        add(0);
        let (counts, dropped) = read_counts(&shared);
        assert_eq!((counts.len(), counts[0], counts[1], dropped), (DENIALS_MAX, 3, 1, 5));
    }
}
