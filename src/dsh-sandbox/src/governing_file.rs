//! Files that govern or record a run must not be the command's to replace: a facts file opened
//! before the run can be renamed away and forged.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::RequestError;
use crate::request::Request;
use crate::roots;

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
    let roots = roots::resolve(request)?;
    let resolved = path.canonicalize().unwrap_or_else(|_| {
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        parent.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default()
    });
    // Compared by inode, so that another name of the root (a bind mount) does not hide it.
    for ancestor in resolved.ancestors() {
        let Ok(metadata) = ancestor.metadata() else { continue };
        let identity = (metadata.dev(), metadata.ino());
        let inside = roots.writable.iter().find(|root| (root.device, root.inode) == identity);
        if let Some(root) = inside {
            return Err(RequestError::GoverningFile {
                role,
                path: path.to_owned(),
                root: root.path().to_owned(),
            });
        }
    }
    Ok(())
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
        request.mode = Some(SandboxMode::ReadOnly);
        assert!(check_governing_file("facts file", &inside, &request).is_ok());
    }
}
