//! The workspace and the writable roots: resolved once, checked, and merged.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use dsh_facts::SandboxMode;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat, stat};

use crate::error::{RequestError, errno_of};
use crate::mountinfo::{self, Mount};
use crate::policy::Policy;
use crate::profile::{ProfilePath, profile_directory};
use crate::request::Request;
use crate::root::Root;
use crate::walk::walk;
use crate::way::root_on_the_way;

/// Places of which the sandbox has its own, so that a writable root cannot be or hold them.
const OWN_PLACES: [&str; 5] = ["/tmp", "/dev/shm", "/dev", "/proc", "/sys"];

/// The roots of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    /// The workspace.
    pub(crate) workspace: Root,
    /// Every writable root, outermost only, sorted; empty in a rung that writes nothing.
    pub(crate) writable: Vec<Root>,
    /// For each writable root, the mounts of kernel interfaces below it.
    pub(crate) interfaces: Vec<Vec<OsString>>,
    /// Roots of the profile that do not exist.
    pub(crate) missing: Vec<PathBuf>,
    /// The mounts among which they were found.
    pub(crate) mounts: Vec<Mount>,
}

/// A directory as it was named, and what it is.
struct Given {
    role: &'static str,
    path: PathBuf,
    root: Root,
}

/// Resolves and checks the roots of a request.
pub(crate) fn resolve(request: &Request, policy: &Policy) -> Result<Roots, RequestError> {
    let workspace = match &request.workspace {
        Some(path) => find("workspace", "--workspace", path)?,
        None => find("workspace", "--workspace", &current_directory()?)?,
    };
    let extra = request.writable.iter().map(|path| find("writable root", "--writable", path));
    let extra = extra.collect::<Result<Vec<_>, _>>()?;
    if policy.mode != SandboxMode::WorkspaceWrite {
        return Ok(Roots {
            workspace: workspace.root,
            writable: Vec::new(),
            interfaces: Vec::new(),
            missing: Vec::new(),
            mounts: if policy.carves_out() { read_mounts() } else { Vec::new() },
        });
    }
    let (of_profile, missing) = find_of_profile(policy, workspace.root.path())?;
    let mounts = read_mounts();
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    let home = home.as_deref().filter(|_| !request.allow_home);
    let profiles = profile_directory().filter(|_| !request.allow_home);
    let workspace_root = workspace.root.clone();
    let given: Vec<Given> = [workspace].into_iter().chain(extra).chain(of_profile).collect();
    for one in &given {
        check(one, home, profiles.as_deref(), &mounts)?;
    }
    // What lies inside another root is writable already.
    let writable = outermost(given.iter().map(|one| one.root.clone()), Root::path);
    for one in &given {
        check_way(one, &writable, &mounts)?;
    }
    let interfaces =
        writable.iter().map(|root| mountinfo::interfaces_below(&mounts, root.path())).collect();
    Ok(Roots { workspace: workspace_root, writable, interfaces, missing, mounts })
}

fn read_mounts() -> Vec<Mount> {
    mountinfo::read().unwrap_or_default()
}

/// The writable roots of the profile. A profile serves many projects and machines, so those that do
/// not exist are left out: less is writable than it allows.
fn find_of_profile(
    policy: &Policy,
    workspace: &Path,
) -> Result<(Vec<Given>, Vec<PathBuf>), RequestError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for path in &policy.profile_writable {
        let path = expand(path, workspace)?;
        match find("writable root", "writable", &path) {
            Ok(given) => found.push(given),
            Err(RequestError::Root { errno, .. }) if errno == Errno::ENOENT as i32 => {
                missing.push(path);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, missing))
}

/// Refuses a root that is reached through another: a command could lead the name elsewhere, such as
/// to the keys of its user, and the next run would make that writable.
fn check_way(given: &Given, writable: &[Root], mounts: &[Mount]) -> Result<(), RequestError> {
    let root = given.root.path();
    // What the way leads to is writable anyway there.
    let others: Vec<_> =
        writable.iter().filter(|other| !root.starts_with(other.path())).cloned().collect();
    match root_on_the_way(&given.path, &others, mounts) {
        None => Ok(()),
        Some(through) => Err(RequestError::RootThroughRoot {
            role: given.role,
            path: given.path.clone(),
            through: through.path().to_owned(),
            root: root.to_owned(),
        }),
    }
}

/// The unix sockets that may be reached, as absolute names: a service may make its socket later, or
/// anew. Those that lie in a writable root need no permission; one that is reached through a root
/// would be whatever a command makes of the name.
///
/// # Errors
///
/// [`RequestError::RootThroughRoot`], [`RequestError::CurrentDirectory`], [`RequestError::NoHome`].
pub(crate) fn sockets(
    request: &Request,
    policy: &Policy,
    roots: &Roots,
) -> Result<Vec<OsString>, RequestError> {
    let of_profile = policy.profile_sockets.iter().map(|path| expand(path, roots.workspace.path()));
    let of_request = request.sockets.iter().map(|path| {
        std::path::absolute(path)
            .map_err(|error| RequestError::CurrentDirectory { errno: errno_of(&error) as i32 })
    });
    let mut sockets = Vec::new();
    for path in of_profile.chain(of_request) {
        let path = path?;
        let end = walk(&path).end;
        match root_on_the_way(&path, &roots.writable, &roots.mounts) {
            None => sockets.push(path.into()),
            Some(through) if end.starts_with(through.path()) => {}
            Some(through) => {
                return Err(RequestError::RootThroughRoot {
                    role: "socket",
                    path,
                    through: through.path().to_owned(),
                    root: end,
                });
            }
        }
    }
    Ok(sockets)
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
/// whatever becomes of the names on the way. A directory that has none any more cannot be found again
/// (ENOENT), nor one whose name another has taken (ESTALE).
fn find(role: &'static str, flag: &'static str, path: &Path) -> Result<Given, RequestError> {
    let failed = |errno: Errno| RequestError::Root {
        role,
        flag,
        path: path.to_owned(),
        errno: errno as i32,
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(failed)?;
    let found = fstat(&directory).map_err(failed)?;
    let name = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).map_err(
        |error| match errno_of(&error) {
            Errno::ENOENT => RequestError::NoProc,
            errno => failed(errno),
        },
    )?;
    let named = stat(&name).map_err(failed)?;
    if (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino) {
        return Err(failed(Errno::ESTALE));
    }
    let root = Root { path: name.into(), device: found.st_dev, inode: found.st_ino };
    Ok(Given { role, path: path.to_owned(), root })
}

/// Refuses a root whose being writable would undo the rung.
fn check(
    given: &Given,
    home: Option<&Path>,
    profiles: Option<&Path>,
    mounts: &[Mount],
) -> Result<(), RequestError> {
    let (role, path) = (given.role, given.root.path());
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

/// Drops what lies inside another.
pub(crate) fn outermost<T>(
    places: impl IntoIterator<Item = T>,
    path: impl Fn(&T) -> &Path,
) -> Vec<T> {
    let mut places: Vec<T> = places.into_iter().collect();
    places.sort_by(|a, b| path(a).cmp(path(b)));
    let mut kept: Vec<T> = Vec::new();
    for place in places {
        if !kept.last().is_some_and(|outer| path(&place).starts_with(path(outer))) {
            kept.push(place);
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
