//! Everything about a directory tree that an attack could change.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

nix::ioctl_read!(get_flags, b'f', 1, nix::libc::c_long);

/// A tree's entries by path. Two snapshots are equal when nothing has happened in between.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    entries: BTreeMap<PathBuf, Entry>,
}

/// One file, as seen from outside.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Type and permissions.
    pub(crate) mode: u32,
    owner: (u32, u32),
    inode: u64,
    links: u64,
    modified: (i64, i64),
    /// Moves with every change of content or metadata, even one that is undone.
    changed: (i64, i64),
    content: Vec<u8>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    flags: Option<i64>,
}

impl Snapshot {
    /// Looks at the directory and everything below it.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        Self::outside(root, &[])
    }

    /// The same, without these and what is below them.
    pub(crate) fn outside(root: &Path, left_out: &[PathBuf]) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        let mut pending = vec![root.to_path_buf()];
        while let Some(path) = pending.pop() {
            if left_out.contains(&path) {
                continue;
            }
            if path.symlink_metadata()?.is_dir() {
                for child in fs::read_dir(&path)? {
                    pending.push(child?.path());
                }
            }
            let entry = Entry::of(&path)?;
            entries.insert(path, entry);
        }
        Ok(Self { entries })
    }

    /// The entries, by path.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    /// One line for each entry that was added, removed or changed since `before`.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, old) in &before.entries {
            match self.entries.get(path) {
                None => changes.push(format!("{} is gone", path.display())),
                Some(new) => changes.extend(
                    new.changes_since(old).map(|what| format!("{}: {what}", path.display())),
                ),
            }
        }
        let added = self.entries.keys().filter(|path| !before.entries.contains_key(*path));
        changes.extend(added.map(|path| format!("{} is new", path.display())));
        changes
    }
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let kind = metadata.file_type();
        let content = if kind.is_file() {
            fs::read(path)?
        } else if kind.is_symlink() {
            fs::read_link(path)?.as_os_str().as_bytes().to_vec()
        } else if kind.is_block_device() || kind.is_char_device() {
            metadata.rdev().to_ne_bytes().to_vec()
        } else {
            Vec::new()
        };
        Ok(Self {
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            inode: metadata.ino(),
            links: metadata.nlink(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            content,
            xattrs: xattrs(path)?,
            flags: (kind.is_file() || kind.is_dir()).then(|| flags(path)).transpose()?.flatten(),
        })
    }

    fn fields(&self) -> [(&'static str, String); 9] {
        [
            ("mode", format!("{:o}", self.mode)),
            ("owner", format!("{:?}", self.owner)),
            ("inode", self.inode.to_string()),
            ("links", self.links.to_string()),
            ("mtime", format!("{:?}", self.modified)),
            ("ctime", format!("{:?}", self.changed)),
            ("content", self.content.escape_ascii().to_string()),
            ("xattrs", format!("{:?}", self.xattrs)),
            ("flags", format!("{:?}", self.flags)),
        ]
    }

    fn changes_since(&self, before: &Self) -> impl Iterator<Item = String> {
        let pairs = before.fields().into_iter().zip(self.fields());
        let changed = pairs.filter(|(old, new)| old != new);
        changed.map(|((name, old), (_, new))| format!("{name} was {old} and is {new}"))
    }

    /// Whether executing the file would change the caller's identity, or opening it reach a device.
    pub(crate) fn is_dangerous(&self) -> bool {
        let kind = self.mode & nix::libc::S_IFMT;
        let set_id = kind == nix::libc::S_IFREG && self.mode & 0o6000 != 0;
        set_id || matches!(kind, nix::libc::S_IFBLK | nix::libc::S_IFCHR)
    }
}

/// The file flags (`lsattr`), where the file system has such.
fn flags(path: &Path) -> io::Result<Option<i64>> {
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW)
        .open(path)?;
    let mut flags = 0;
    // SAFETY: the descriptor is open, and the kernel writes at most the long that `flags` is.
    let got = unsafe { get_flags(file.as_raw_fd(), &raw mut flags) };
    Ok(got.ok().map(|_: c_int| flags))
}

fn xattrs(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut names = [0_u8; 4096];
    // SAFETY: `path` ends with a NUL, and the kernel writes at most `names.len()` bytes.
    let length =
        unsafe { nix::libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    let Ok(length) = usize::try_from(length) else {
        return Ok(Vec::new());
    };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| Ok((name.to_vec(), xattr(&path, &CString::new(name)?)))).collect()
}

fn xattr(path: &CString, name: &CString) -> Vec<u8> {
    let mut value = vec![0_u8; 4096];
    // SAFETY: both names end with a NUL, and the kernel writes at most `value.len()` bytes.
    let length = unsafe {
        nix::libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    value.truncate(usize::try_from(length).unwrap_or_default());
    value
}
