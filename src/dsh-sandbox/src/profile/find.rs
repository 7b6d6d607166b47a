//! Finding a profile: by the path of its file, or by name among the built-in ones and those of the
//! caller's own directory.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::ProfileError;
use super::file::Source;
use crate::error::errno_of;

/// Profiles that come with the library, beside the rungs.
const BUILT_IN: [(&str, &str); 1] =
    [("protect-vcs", include_str!("../../sandbox-profiles/protect-vcs.toml"))];

/// Far more than any profile needs.
const MOST_BYTES: u64 = 1 << 20;

/// The caller's own profiles: `$XDG_CONFIG_HOME/dsh/profiles`, XDG Base Directory Specification.
#[must_use]
pub fn profile_directory() -> Option<PathBuf> {
    // Relative values are to be ignored, says the specification.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(configuration.join("dsh/profiles"))
}

/// Whether what was asked for is a file rather than a name.
fn is_path(wanted: &str) -> bool {
    wanted.contains('/') || Path::new(wanted).extension().is_some_and(|ending| ending == "toml")
}

/// Finds the text of a profile. A relative path is taken from `directory`.
pub(super) fn source(wanted: &str, directory: &Path) -> Result<Source, ProfileError> {
    if is_path(wanted) {
        return read(directory.join(wanted));
    }
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == wanted) {
        let path = format!("<{name}>").into();
        return Ok(Source { path, text: (*text).to_owned(), file: None });
    }
    let own = profile_directory().filter(|_| !wanted.is_empty());
    let own = own.map(|own| own.join(format!("{wanted}.toml")));
    match own.map(read) {
        Some(Ok(source)) => Ok(source),
        Some(Err(error)) if !error.is_absence() => Err(error),
        _ => Err(ProfileError::Unknown { name: wanted.to_owned() }),
    }
}

/// Reads a file that may be anything: a pipe would hang, a device never end.
fn read(path: PathBuf) -> Result<Source, ProfileError> {
    let failed = |error| ProfileError::Read { path: path.clone(), errno: errno_of(&error) as i32 };
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits()).open(&path);
    let file = file.map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(ProfileError::NotAFile { path });
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ProfileError::TooLarge { path });
    }
    let identity = (found.dev(), found.ino());
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { path, text, file: Some(identity) }),
        Err(_) => Err(ProfileError::NotText { path }),
    }
}

/// Whether a name is taken by a profile of the library.
fn is_built_in(name: &str) -> bool {
    dsh_facts::SandboxMode::ALL.iter().any(|mode| mode.as_str() == name)
        || BUILT_IN.iter().any(|(built_in, _)| *built_in == name)
}

/// The names that `extends` and `--profile` know: the rungs, the other built-in profiles, and the
/// caller's own, each with its file.
#[must_use]
pub fn profile_names() -> Vec<(String, Option<PathBuf>)> {
    let rungs = dsh_facts::SandboxMode::ALL.iter().map(|mode| mode.as_str());
    let built_in = rungs.chain(BUILT_IN.iter().map(|(name, _)| *name));
    let mut names: Vec<_> = built_in.map(|name| (name.to_owned(), None)).collect();
    let entries = profile_directory().and_then(|own| std::fs::read_dir(own).ok());
    let mut own: Vec<_> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".toml")?.to_owned();
            // The file of a built-in name is never read, nor one whose name is taken for a path.
            let is_name = !(name.is_empty() || is_built_in(&name) || is_path(&name));
            is_name.then_some((name, Some(path)))
        })
        .collect();
    own.sort();
    names.extend(own);
    names
}
