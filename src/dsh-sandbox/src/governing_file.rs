//! Files that govern or record a run must not be the command's to replace: a facts file opened
//! before the run can be renamed away and forged.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::RequestError;
use crate::policy::Policy;
use crate::request::Request;
use crate::roots::{self, Root};
use crate::walk::walk;

/// Refuses a file below a writable root of the request. The file need not exist yet.
///
/// # Errors
///
/// [`RequestError::GoverningFile`], or an error of the request's roots.
pub fn check_governing_file(
    role: &'static str,
    path: &Path,
    request: &Request,
) -> Result<(), RequestError> {
    if !request.mode().confines() {
        return Ok(());
    }
    let writable = roots::resolve(request, &Policy::of(request)?)?.writable;
    check_below(role, path, &writable)
}

/// The same, with the writable roots at hand.
///
/// Every name on the way counts, not only where it leads: a symbolic link that lies in a root is
/// the command's to change.
pub(crate) fn check_below(
    role: &'static str,
    path: &Path,
    writable: &[Root],
) -> Result<(), RequestError> {
    if writable.is_empty() {
        return Ok(());
    }
    let start = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for step in walk(&start).steps {
        if let Some(root) = root_of(&step.directory, writable) {
            return Err(RequestError::GoverningFile {
                role,
                path: path.to_owned(),
                root: root.path().to_owned(),
            });
        }
    }
    Ok(())
}

/// The root that a directory is or lies in. Compared by inode, so that another name of the root (a
/// bind mount) does not hide it.
fn root_of<'a>(directory: &Path, writable: &'a [Root]) -> Option<&'a Root> {
    directory.ancestors().filter_map(|ancestor| ancestor.metadata().ok()).find_map(|metadata| {
        let identity = (metadata.dev(), metadata.ino());
        writable.iter().find(|root| (root.device, root.inode) == identity)
    })
}

#[cfg(test)]
mod tests {
    use dsh_facts::SandboxMode;

    use super::*;

    #[test]
    fn a_file_below_a_writable_root_is_refused_by_any_name() {
        let base = tempfile::tempdir().expect("a directory");
        let workspace = base.path().join("w");
        std::fs::create_dir(&workspace).expect("mkdir");
        std::os::unix::fs::symlink("w", base.path().join("alias")).expect("symlink");
        let mut request = Request {
            mode: Some(SandboxMode::WorkspaceWrite),
            workspace: Some(workspace),
            ..Request::default()
        };
        let inside = base.path().join("alias/facts.json");
        let beside = base.path().join("facts.json");
        assert!(check_governing_file("facts file", &inside, &request).is_err());
        assert!(check_governing_file("facts file", &beside, &request).is_ok());
        std::os::unix::fs::symlink(base.path(), base.path().join("w/out")).expect("symlink");
        let through = base.path().join("w/out/facts.json");
        assert!(check_governing_file("facts file", &through, &request).is_err());
        let around = base.path().join("w/../facts.json");
        assert!(check_governing_file("facts file", &around, &request).is_ok());
        request.mode = Some(SandboxMode::ReadOnly);
        assert!(check_governing_file("facts file", &inside, &request).is_ok());
    }
}
