//! Paths as profiles write them.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An absolute path, one below the home directory (`~/…`), or one below the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ProfilePath(String);

impl TryFrom<String> for ProfilePath {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        if path.is_empty() || path.contains('\0') {
            return Err(format!("{path:?}: a path is not empty and holds no NUL"));
        }
        if path.starts_with('~') && path != "~" && !path.starts_with("~/") {
            return Err(format!(
                "'{path}': ~ stands for the caller's own home directory only, as in ~/.ssh"
            ));
        }
        if path.starts_with('$') {
            return Err(format!("'{path}': variables are not put in; ~ is the home directory"));
        }
        Ok(Self(path))
    }
}

impl ProfilePath {
    /// As written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The absolute path; none where there is no home directory to put in place of `~`.
    pub(crate) fn expand(&self, workspace: &Path, home: Option<&Path>) -> Option<PathBuf> {
        match self.0.strip_prefix('~') {
            Some(rest) => Some(home?.join(rest.trim_start_matches('/'))),
            None => Some(workspace.join(&self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_from_the_root_the_home_or_the_workspace() {
        let expand = |text: &str, home| {
            let path = ProfilePath::try_from(text.to_owned()).expect("a path");
            path.expand(Path::new("/w"), home)
        };
        let home = Some(Path::new("/h"));
        assert_eq!(expand("/etc", home), Some("/etc".into()));
        assert_eq!(expand("~/.ssh", home), Some("/h/.ssh".into()));
        assert_eq!(expand("~", home), Some("/h/".into()));
        assert_eq!(expand(".git/hooks", home), Some("/w/.git/hooks".into()));
        assert_eq!(expand("~/.ssh", None), None);
        assert!(ProfilePath::try_from("~root/x".to_owned()).is_err());
    }
}
