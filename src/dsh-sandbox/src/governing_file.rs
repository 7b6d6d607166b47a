//! Files that govern or record a run must not be the command's to replace: a facts file opened
//! before the run can be renamed away and forged.

use std::path::Path;

use crate::error::RequestError;
use crate::mountinfo::Mount;
use crate::policy::Policy;
use crate::request::Request;
use crate::root::Root;
use crate::roots;
use crate::way::root_on_the_way;

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
    let roots = roots::resolve(request, &Policy::of(request)?)?;
    check_below(role, path, &roots.writable, &roots.mounts)
}

/// The same, with the writable roots at hand.
pub(crate) fn check_below(
    role: &'static str,
    path: &Path,
    writable: &[Root],
    mounts: &[Mount],
) -> Result<(), RequestError> {
    match root_on_the_way(path, writable, mounts) {
        None => Ok(()),
        Some(root) => Err(RequestError::GoverningFile {
            role,
            path: path.to_owned(),
            root: root.path().to_owned(),
        }),
    }
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
