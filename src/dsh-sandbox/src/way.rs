//! Whether the way to a path is the command's to change.

use std::path::Path;

use crate::mountinfo::{self, Mount};
use crate::other_names::{OtherName, other_names};
use crate::root::Root;
use crate::walk::walk;

/// The first of the roots in which a name on the way lies.
///
/// Every name counts, not only where the way leads: a symbolic link that lies in a root is the
/// command's to change. The path need not exist yet.
pub(crate) fn root_on_the_way<'a>(
    path: &Path,
    roots: &'a [Root],
    mounts: &[Mount],
) -> Option<&'a Root> {
    if roots.is_empty() {
        return None;
    }
    let start = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    walk(&start).steps.iter().find_map(|step| root_of(&step.directory, roots, mounts))
}

/// The root in which a directory lies by any of its names.
fn root_of<'a>(directory: &Path, roots: &'a [Root], mounts: &[Mount]) -> Option<&'a Root> {
    let holder = |name: &Path| roots.iter().find(|root| name.starts_with(root.path()));
    holder(directory).or_else(|| {
        let others = other_names(mounts, directory);
        let found = others.iter().find_map(|other| match other {
            OtherName::Whole(name) => holder(name),
            OtherName::Part(_) => None,
        });
        // A root may hold the /proc of a system image, which stays read-only.
        let is_interface =
            || mountinfo::holding(mounts, directory).is_some_and(Mount::is_kernel_interface);
        found.filter(|_| !is_interface())
    })
}
