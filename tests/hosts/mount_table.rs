//! The mount table of a sandbox, as a command in it sees it: proc_pid_mountinfo(5).

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug)]
pub(crate) struct Mount {
    id: u32,
    parent: u32,
    /// Where it is attached.
    pub(crate) point: PathBuf,
    options: String,
}

impl Mount {
    /// Whether it has a flag.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.options.split(',').any(|option| option == flag)
    }
}

/// The mounts that a path can lead to: those that no other mount covers, directly or above.
pub(crate) fn in_reach(table: &str) -> Vec<Mount> {
    let mounts: Vec<Mount> = table.lines().filter_map(parse).collect();
    let reached = |mount: &Mount| is_in_reach(&mounts, mount);
    let keep: Vec<u32> = mounts.iter().filter(|one| reached(one)).map(|one| one.id).collect();
    mounts.into_iter().filter(|mount| keep.contains(&mount.id)).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    Some(Mount {
        id: fields.next()?.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        // No test makes a mount point whose name needs an escape.
        point: fields.nth(2)?.into(),
        options: fields.next()?.to_owned(),
    })
}

/// Whether a walk from the root arrives at the mount's own root. A mount on the same point covers
/// it; so does one, of the same parent, on a directory above.
fn is_in_reach(mounts: &[Mount], mount: &Mount) -> bool {
    let covered = mounts.iter().any(|one| one.parent == mount.id && one.point == mount.point);
    !covered && leads_to(mounts, mount)
}

/// Whether a walk arrives at the mount point.
fn leads_to(mounts: &[Mount], mount: &Mount) -> bool {
    let Some(parent) = mounts.iter().find(|one| one.id == mount.parent && one.id != mount.id)
    else {
        return true;
    };
    let bypassed = |point: &Path| mount.point.starts_with(point) && mount.point != point;
    let hidden = mounts
        .iter()
        .any(|one| one.parent == parent.id && one.id != mount.id && bypassed(&one.point));
    !hidden && leads_to(mounts, parent)
}
