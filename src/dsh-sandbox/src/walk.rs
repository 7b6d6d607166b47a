//! A path walked name by name, as path_resolution(7) has it, so that every name on the way can be
//! looked at: a symbolic link that a command may change counts as much as where it leads.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::error::errno_of;

/// As many symbolic links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// One name on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The directory in which the name is looked up, with no symbolic link in its path.
    pub(crate) directory: PathBuf,
    /// The directory and the name.
    pub(crate) node: PathBuf,
    /// What is there.
    pub(crate) kind: Kind,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// A symbolic link; the next steps are where it leads.
    Link,
    /// Anything else.
    File,
    /// Nothing, or nothing that this caller can see. The rest of the path is walked by its names.
    Missing(Errno),
}

/// A whole way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Every name on it.
    pub(crate) steps: Vec<Step>,
    /// Where it ends, with no symbolic link in its path.
    pub(crate) end: PathBuf,
}

impl Walk {
    /// What is missing on the way, if something is.
    pub(crate) fn missing(&self) -> Option<&Step> {
        self.steps.iter().find(|step| matches!(step.kind, Kind::Missing(_)))
    }
}

/// Walks an absolute path to its end.
pub(crate) fn walk(path: &Path) -> Walk {
    let mut steps = Vec::new();
    let mut here = PathBuf::from("/");
    // What is still to be walked, last component first.
    let mut rest = components(path);
    let mut links = 0;
    let mut lost: Option<Errno> = None;
    while let Some(name) = rest.pop() {
        let node = here.join(&name);
        let mut step =
            |kind| steps.push(Step { directory: here.clone(), node: node.clone(), kind });
        if name == ".." {
            if let Some(errno) = lost {
                step(Kind::Missing(errno));
            }
            here.pop();
            continue;
        }
        let found = match lost {
            Some(errno) => Err(errno),
            None => node.symlink_metadata().map_err(|error| errno_of(&error)),
        };
        match found {
            Ok(found) if found.is_symlink() => {
                links += 1;
                step(Kind::Link);
                let errno = match std::fs::read_link(&node) {
                    Ok(target) if links <= MOST_LINKS => {
                        if target.is_absolute() {
                            here = PathBuf::from("/");
                        }
                        rest.extend(components(&target));
                        continue;
                    }
                    Ok(_) => Errno::ELOOP,
                    Err(error) => errno_of(&error),
                };
                step(Kind::Missing(errno));
                lost = Some(errno);
            }
            Ok(found) if found.is_dir() => step(Kind::Directory),
            Ok(_) => {
                step(Kind::File);
                lost = Some(Errno::ENOTDIR);
            }
            Err(errno) => {
                step(Kind::Missing(errno));
                lost = Some(errno);
            }
        }
        here = node;
    }
    Walk { steps, end: here }
}

/// Opens a node by its canonical name; a symbolic link itself, where the node is one.
///
/// # Errors
///
/// `ELOOP` where a symbolic link is on the way.
pub(crate) fn open_node(path: &Path) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how)
}

/// The names of a path in reverse; the root itself is none.
fn components(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_steps_and_then_followed() {
        let base = tempfile::tempdir().expect("a directory");
        let base = base.path().canonicalize().expect("canonical");
        std::fs::create_dir_all(base.join("a/b")).expect("mkdir");
        std::fs::write(base.join("a/file"), "").expect("a file");
        symlink("a/b/..", base.join("link")).expect("symlink");
        let steps = walk(&base.join("link/file/x")).steps;
        let seen: Vec<_> = steps
            .iter()
            .filter_map(|step| Some((step.node.strip_prefix(&base).ok()?, step.kind)))
            .filter(|(node, _)| *node != Path::new(""))
            .collect();
        let expected = [
            ("link", Kind::Link),
            ("a", Kind::Directory),
            ("a/b", Kind::Directory),
            ("a/file", Kind::File),
            ("a/file/x", Kind::Missing(Errno::ENOTDIR)),
        ];
        assert_eq!(seen, expected.map(|(node, kind)| (Path::new(node), kind)));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let base = tempfile::tempdir().expect("a directory");
        symlink("loop", base.path().join("loop")).expect("symlink");
        for name in ["loop", "loop/x", "loop/.."] {
            assert_eq!(missing(&base.path().join(name)), Some(Kind::Missing(Errno::ELOOP)));
        }
    }

    #[test]
    fn nothing_is_above_what_is_no_directory() {
        let base = tempfile::tempdir().expect("a directory");
        std::fs::write(base.path().join("file"), "").expect("a file");
        for (name, errno) in [("file/..", Errno::ENOTDIR), ("none/..", Errno::ENOENT)] {
            assert_eq!(missing(&base.path().join(name)), Some(Kind::Missing(errno)), "{name}");
        }
        assert_eq!(missing(&base.path().join("../..")), None);
    }

    fn missing(path: &Path) -> Option<Kind> {
        walk(path).missing().map(|step| step.kind)
    }
}
