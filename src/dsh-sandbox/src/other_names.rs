//! The names that a place has by the mounts: the same place of its file system shown elsewhere, and
//! parts of it.

use std::path::{Path, PathBuf};

use crate::mountinfo::{Mount, holding, leads_to};

/// Another name that a place has by the mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OtherName {
    /// It is shown there too.
    Whole(PathBuf),
    /// A part of it is: the root of a mount.
    Part(PathBuf),
}

/// Every other name of a place; `path` must be canonical.
pub(crate) fn other_names(mounts: &[Mount], path: &Path) -> Vec<OtherName> {
    // Without two mounts of one file system there is nothing to ask the kernel for.
    let is_shared =
        |one: &Mount| mounts.iter().any(|other| other.id != one.id && other.device == one.device);
    if !mounts.iter().any(|mount| path.starts_with(&mount.point) && is_shared(mount)) {
        return Vec::new();
    }
    let Some(holder) = holding(mounts, path) else { return Vec::new() };
    let Ok(relative) = path.strip_prefix(&holder.point) else { return Vec::new() };
    names_beside(mounts, holder, &joined(&holder.root, relative))
        .filter(|(name, mount)| leads_to(name.path(), mount))
        .map(|(name, _)| name)
        .collect()
}

/// What the other mounts of a file system show of a place in it.
fn names_beside<'a>(
    mounts: &'a [Mount],
    holder: &'a Mount,
    inner: &'a Path,
) -> impl Iterator<Item = (OtherName, &'a Mount)> {
    let others =
        mounts.iter().filter(|mount| mount.device == holder.device && mount.id != holder.id);
    others.filter_map(move |mount| match inner.strip_prefix(&mount.root) {
        Ok(rest) => Some((OtherName::Whole(joined(&mount.point, rest)), mount)),
        Err(_) if mount.root.starts_with(inner) => {
            Some((OtherName::Part(mount.point.clone()), mount))
        }
        Err(_) => None,
    })
}

impl OtherName {
    /// The name.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Whole(path) | Self::Part(path) => path,
        }
    }
}

/// `join` would add a slash for nothing.
fn joined(base: &Path, rest: &Path) -> PathBuf {
    if rest == Path::new("") { base.to_owned() } else { base.join(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo::parse;

    #[test]
    fn a_place_has_a_name_by_each_mount_that_shows_it() {
        let mounts = parse(
            b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
              28 27 254:0 /home/u /mnt/u rw - ext4 /dev/vda rw\n\
              29 27 254:0 /home/u/keys/deep /srv/deep rw - ext4 /dev/vda rw\n\
              30 27 0:9 /home/u /tmpfs rw - tmpfs tmpfs rw\n",
        );
        let names = |holder: usize| -> Vec<_> {
            names_beside(&mounts, &mounts[holder], Path::new("/home/u/keys"))
                .map(|(name, _)| name)
                .collect()
        };
        let part = OtherName::Part("/srv/deep".into());
        assert_eq!(names(0), [OtherName::Whole("/mnt/u/keys".into()), part.clone()]);
        assert_eq!(names(1), [OtherName::Whole("/home/u/keys".into()), part]);
    }
}
