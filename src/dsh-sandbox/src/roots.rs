//! The workspace and the writable roots: resolved once, checked, and merged.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use dsh_facts::SandboxMode;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use serde::{Deserialize, Serialize};

use crate::error::{RequestError, errno_of};
use crate::mountinfo::{self, Mount};
use crate::policy::Policy;
use crate::profile::{ProfilePath, profile_directory};
use crate::request::Request;

/// Places of which the sandbox has its own, so that a writable root cannot be or hold them.
const OWN_PLACES: [&str; 5] = ["/tmp", "/dev/shm", "/dev", "/proc", "/sys"];

/// A directory, known by more than its name: whoever opens it compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The canonical path. (An OsString: serde refuses a path that is not UTF-8.)
    pub path: OsString,
    /// Device of the directory.
    pub device: u64,
    /// Inode of the directory.
    pub inode: u64,
}

impl Root {
    /// The canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

/// The roots of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    /// The workspace.
    pub(crate) workspace: Root,
    /// Every writable root, outermost only, sorted; empty in a rung that writes nothing.
    pub(crate) writable: Vec<Root>,
    /// For each writable root, the mounts of kernel interfaces below it.
    pub(crate) interfaces: Vec<Vec<OsString>>,
    /// The names by which the writable roots were asked for.
    pub(crate) named: Vec<PathBuf>,
    /// Roots of the profile that do not exist.
    pub(crate) missing: Vec<PathBuf>,
}

impl Roots {
    /// Whether a name lies within a writable root, where a command can replace it.
    pub(crate) fn is_within_another(&self, name: &Path) -> bool {
        self.writable.iter().any(|root| name.starts_with(root.path()) && name != root.path())
    }
}

/// Resolves and checks the roots of a request.
pub(crate) fn resolve(request: &Request, policy: &Policy) -> Result<Roots, RequestError> {
    let workspace = match &request.workspace {
        Some(path) => find("workspace", "--workspace", path)?,
        None => find("workspace", "--workspace", &current_directory()?)?,
    };
    let extra = request
        .writable
        .iter()
        .map(|path| find("writable root", "--writable", path))
        .collect::<Result<Vec<_>, _>>()?;
    if policy.mode != SandboxMode::WorkspaceWrite {
        return Ok(Roots {
            workspace,
            writable: Vec::new(),
            interfaces: Vec::new(),
            named: Vec::new(),
            missing: Vec::new(),
        });
    }
    let (of_profile, missing) = find_of_profile(policy, workspace.path())?;
    let named = names(request, policy, workspace.path())?;
    let mounts = mountinfo::read().unwrap_or_default();
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let home = home.as_deref().filter(|_| !request.allow_home);
    let profiles = profile_directory().filter(|_| !request.allow_home);
    let profiles = profiles.as_deref();
    check("workspace", &workspace, home, profiles, &mounts)?;
    for root in extra.iter().chain(&of_profile) {
        check("writable root", root, home, profiles, &mounts)?;
    }
    let writable =
        outermost([workspace.clone()].into_iter().chain(extra).chain(of_profile).collect());
    let interfaces =
        writable.iter().map(|root| mountinfo::interfaces_below(&mounts, root.path())).collect();
    Ok(Roots { workspace, writable, interfaces, named, missing })
}

/// The names by which writable roots are asked for, absolute.
fn names(
    request: &Request,
    policy: &Policy,
    workspace: &Path,
) -> Result<Vec<PathBuf>, RequestError> {
    let given = request.workspace.iter().chain(&request.writable);
    let given = given.map(|path| {
        if path.is_absolute() { Ok(path.clone()) } else { Ok(current_directory()?.join(path)) }
    });
    let of_profile = policy.profile_writable.iter().map(|path| expand(path, workspace));
    given.chain(of_profile).chain([Ok(workspace.to_owned())]).collect()
}

/// The writable roots of the profile. A profile serves many projects and machines, so those that do
/// not exist are left out: less is writable than it allows.
fn find_of_profile(
    policy: &Policy,
    workspace: &Path,
) -> Result<(Vec<Root>, Vec<PathBuf>), RequestError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for path in &policy.profile_writable {
        let path = expand(path, workspace)?;
        match find("writable root", "writable", &path) {
            Ok(root) => found.push(root),
            Err(RequestError::Root { errno, .. }) if errno == Errno::ENOENT as i32 => {
                missing.push(path);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, missing))
}

/// The absolute path that a profile names.
pub(crate) fn expand(path: &ProfilePath, workspace: &Path) -> Result<PathBuf, RequestError> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    path.expand(workspace, home.as_deref())
        .ok_or_else(|| RequestError::NoHome { path: path.as_str().to_owned() })
}

pub(crate) fn current_directory() -> Result<PathBuf, RequestError> {
    std::env::current_dir()
        .map_err(|error| RequestError::CurrentDirectory { errno: errno_of(&error) as i32 })
}

/// Opens the directory once: its inode and the name that the kernel has for it belong together,
/// whatever becomes of the names on the way.
fn find(role: &'static str, flag: &'static str, path: &Path) -> Result<Root, RequestError> {
    let failed = |errno: Errno| RequestError::Root {
        role,
        flag,
        path: path.to_owned(),
        errno: errno as i32,
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(failed)?;
    let found = fstat(&directory).map_err(failed)?;
    let name = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
        .map_err(|error| failed(errno_of(&error)))?;
    Ok(Root { path: name.into(), device: found.st_dev, inode: found.st_ino })
}

/// Refuses a root whose being writable would undo the rung.
fn check(
    role: &'static str,
    root: &Root,
    home: Option<&Path>,
    profiles: Option<&Path>,
    mounts: &[Mount],
) -> Result<(), RequestError> {
    let path = root.path();
    let too_wide = |reason: String, remedy: &'static str| {
        Err(RequestError::RootTooWide {
            role,
            path: path.to_owned(),
            reason,
            mode: SandboxMode::WorkspaceWrite,
            remedy,
        })
    };
    if path == Path::new("/") {
        return too_wide("is the whole host".to_owned(), "name a directory of the project's own");
    }
    for place in OWN_PLACES {
        // A host may have /tmp elsewhere, by a symbolic link.
        let place = Path::new(place);
        let canonical = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        if canonical.starts_with(path) || place.starts_with(path) {
            let verb = if canonical == path || place == path { "is" } else { "holds" };
            return too_wide(
                format!("{verb} {}, of which the sandbox has its own", place.display()),
                "name a directory below or beside it",
            );
        }
    }
    let interface = mountinfo::holding(mounts, path).filter(|mount| mount.is_kernel_interface());
    if interface.is_some() || (path.starts_with("/dev") && !path.starts_with("/dev/shm")) {
        return too_wide(
            "lies in an interface of the kernel".to_owned(),
            "name a directory of ordinary files",
        );
    }
    if let Some(home) = home.filter(|home| home.starts_with(path)) {
        let verb = if home == path { "is" } else { "holds" };
        return too_wide(
            format!("{verb} the home directory, with its keys and start-up files"),
            "name a directory below it, or add --allow-home",
        );
    }
    let canonical = profiles.and_then(|own| own.canonicalize().ok());
    let held = profiles.into_iter().chain(canonical.as_deref());
    if held.into_iter().any(|own| own.starts_with(path) || path.starts_with(own)) {
        return too_wide(
            "holds your profiles, which say what later runs may do".to_owned(),
            "name a directory below or beside it, or add --allow-home",
        );
    }
    Ok(())
}

/// Drops roots that lie inside another: they are writable already.
fn outermost(mut roots: Vec<Root>) -> Vec<Root> {
    roots.sort_by(|a, b| a.path().cmp(b.path()));
    let mut kept: Vec<Root> = Vec::new();
    for root in roots {
        if !kept.last().is_some_and(|outer| root.path().starts_with(outer.path())) {
            kept.push(root);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(workspace: &Path) -> Request {
        Request {
            mode: Some(SandboxMode::WorkspaceWrite),
            workspace: Some(workspace.to_owned()),
            ..Request::default()
        }
    }

    fn resolve(request: &Request) -> Result<Roots, RequestError> {
        super::resolve(request, &Policy::of(request)?)
    }

    fn reason(workspace: &str) -> String {
        resolve(&request(Path::new(workspace))).expect_err("too wide").to_string()
    }

    #[test]
    fn what_the_sandbox_has_of_its_own_cannot_be_writable() {
        assert!(reason("/").contains("whole host"));
        assert!(reason("/tmp").contains("is /tmp"));
        assert!(reason("/proc/sys").contains("interface of the kernel"));
        assert!(reason("/sys/kernel").contains("interface of the kernel"));
        assert!(reason("/dev").contains("/dev"));
    }

    #[test]
    fn a_narrower_rung_may_look_at_anything() {
        let mut request = request(Path::new("/"));
        request.mode = Some(SandboxMode::ReadOnly);
        assert_eq!(resolve(&request).expect("read-only").writable, []);
    }

    #[test]
    fn nested_roots_are_merged_and_links_resolved() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().canonicalize().expect("canonical");
        for name in ["a", "a/b", "a.c"] {
            std::fs::create_dir(base.join(name)).expect("mkdir");
        }
        std::os::unix::fs::symlink("a", base.join("link")).expect("symlink");
        let mut request = request(&base.join("a/b"));
        request.writable = vec![base.join("link"), base.join("a.c")];
        let roots = resolve(&request).expect("three roots");
        let paths: Vec<_> = roots.writable.iter().map(Root::path).collect();
        assert_eq!(paths, [base.join("a"), base.join("a.c")]);
        assert_eq!(roots.workspace.path(), base.join("a/b"));
    }

    #[test]
    fn a_missing_root_and_a_file_are_named_with_their_flag() {
        let missing = reason("/nonexistent");
        assert!(missing.contains("ENOENT") && missing.contains("--workspace"), "{missing}");
        assert!(reason("/etc/passwd").contains("ENOTDIR"));
    }
}
