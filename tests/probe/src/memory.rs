//! Memory behind which there is none: where a string ends too late, or only just in time.

use nix::errno::Errno;

use crate::sys::{Arg, call};

const PAGE: usize = 4096;
/// Room for two strings that are longer than any path.
const PAGES: usize = 4;

/// Two stretches of memory, each with a page behind it that cannot be read.
pub(crate) struct Edge {
    ends: [u64; 2],
    used: usize,
}

impl Edge {
    pub(crate) fn map() -> Result<Self, Errno> {
        Ok(Self { ends: [Self::one()?, Self::one()?], used: 0 })
    }

    fn one() -> Result<u64, Errno> {
        let length = |pages: usize| Arg::Int(i64::try_from(pages * PAGE).unwrap_or_default());
        let access = Arg::Int((libc::PROT_READ | libc::PROT_WRITE).into());
        let kind = Arg::Int((libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).into());
        let (anywhere, no_file) = (Arg::Int(0), Arg::Int(-1));
        let arguments = vec![anywhere, length(PAGES + 1), access, kind, no_file, Arg::Int(0)];
        let start = call(libc::SYS_mmap, arguments)?;
        let end = start + i64::try_from(PAGES * PAGE).unwrap_or_default();
        let none = Arg::Int(libc::PROT_NONE.into());
        call(libc::SYS_mprotect, vec![Arg::Int(end), length(1), none])?;
        Ok(end.cast_unsigned())
    }

    /// Makes room again.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Puts bytes at the end of a stretch, and tells where they begin.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u64 {
        let end = self.ends[self.used % self.ends.len()];
        self.used += 1;
        let bytes = &bytes[bytes.len().saturating_sub(PAGES * PAGE)..];
        let start = end - bytes.len() as u64;
        let place =
            std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(start).unwrap_or_default());
        // SAFETY: the stretch is ours alone, stays mapped and writable, and its last `PAGES` pages,
        // of which this takes a part, overlap no buffer of the program's.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        start
    }
}
