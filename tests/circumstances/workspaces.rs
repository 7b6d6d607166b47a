//! Workspaces of every kind that needs no mount: where they lie, what they are called, whose they
//! are, and what is in them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use libtest_mimic::Completion;
use nix::unistd::{Gid, Uid, chown, geteuid};

use crate::CONFINED;
use crate::for_each_user;
use crate::place::{DENIED, Fate, MISSING, Place, READ_ONLY};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::running::Running;
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;

pub(crate) fn cases() -> Vec<Case> {
    let kinds = KINDS.iter().flat_map(|&(name, make)| {
        for_each_user(&format!("workspaces::{name}"), move |caller| {
            let mut problems = Problems::default();
            make(caller)?.check(caller, &mut problems)?;
            problems.verdict(&name)
        })
    });
    kinds
        .chain(for_each_user("workspaces::of-another-owner", of_another_owner))
        .chain(for_each_user("workspaces::deleted-during-the-run", deleted_during_the_run))
        .collect()
}

type Make = fn(&Caller) -> io::Result<Place>;

const KINDS: &[(&str, Make)] = &[
    ("plain", |caller| Ok(Place::at(caller.workspace()))),
    // Where the sandbox has directories of its own.
    ("below-tmp", |caller| in_scratch(caller, "/tmp", "")),
    ("deep-below-tmp", |caller| in_scratch(caller, "/tmp", "a/b/c/d")),
    ("below-dev-shm", |caller| in_scratch(caller, "/dev/shm", "")),
    ("deep-below-dev-shm", |caller| in_scratch(caller, "/dev/shm", "a/b")),
    // Reached by links.
    ("named-by-a-link", |caller| {
        symlink("workspace", caller.path("link"))?;
        let options = ["--workspace", "link", "--workdir", "link"];
        Ok(Place::at(caller.workspace()).called_from(caller.path("."), options))
    }),
    ("entered-by-a-link", |caller| {
        symlink("workspace", caller.path("link"))?;
        Ok(Place::at(caller.workspace()).called_from(caller.path("link"), [""; 0]))
    }),
    ("below-tmp-by-a-link", |caller| {
        let link = caller.path("link");
        let directory = scratch(caller, "/tmp")?;
        symlink(directory.path(), &link)?;
        let options = ["--workspace", "link", "--workdir"].map(OsString::from);
        let options = options.into_iter().chain([directory.path().into()]);
        Ok(Place::at(directory.path()).called_from(caller.path("."), options).keep(directory))
    }),
    // What git makes of a worktree, a submodule, and people of a repository.
    ("git-file", |caller| {
        caller.make_file("workspace/.git", "gitdir: ../repository/worktrees/w\n")?;
        Ok(Place::at(caller.workspace()))
    }),
    ("git-link", |caller| {
        caller.make_dir("repository")?;
        symlink("../repository", caller.path("workspace/.git"))?;
        // It leads out of the workspace.
        Ok(Place::at(caller.workspace()).and(".git", READ_ONLY, READ_ONLY))
    }),
    ("git-link-inside", |caller| {
        caller.make_dir("workspace/repository")?;
        symlink("repository", caller.path("workspace/.git"))?;
        Ok(Place::at(caller.workspace()).and(".git", READ_ONLY, Fate::Kept))
    }),
    ("git-dangling-link", |caller| {
        symlink("../missing/repository", caller.path("workspace/.git"))?;
        Ok(Place::at(caller.workspace()).and(".git", MISSING, MISSING))
    }),
    // Names.
    ("blanks", |caller| called(caller, b" a  workspace\t")),
    ("newline", |caller| called(caller, b"two\nlines\n")),
    ("not-utf8", |caller| called(caller, b"\xff\xfe\x80")),
    ("like-an-escape", |caller| called(caller, b"\\040\\012#(deleted)")),
    ("like-an-option", |caller| called(caller, b"--mode=danger-full-access")),
    ("like-a-deleted-one", |caller| called(caller, b"workspace (deleted)")),
    ("longest-name", |caller| called(caller, &[b'n'; 255])),
    ("longest-path", |caller| long(caller.path(""), caller)),
    ("longest-path-below-tmp", |caller| {
        let directory = scratch(caller, "/tmp")?;
        let place = long(directory.path().to_owned(), caller)?;
        Ok(place.keep(directory))
    }),
    // Permissions.
    ("not-writable", |caller| {
        fs::set_permissions(caller.workspace(), Permissions::from_mode(0o555))?;
        let fate = if caller.persona().is_root() { Fate::Kept } else { DENIED };
        Ok(Place::at(caller.workspace()).and(".", READ_ONLY, fate))
    }),
    ("not-readable", |caller| {
        fs::set_permissions(caller.workspace(), Permissions::from_mode(0o333))?;
        let place = Place::at(caller.workspace());
        Ok(if geteuid().is_root() { place } else { place.unwatched() })
    }),
    ("sticky", |caller| {
        fs::set_permissions(caller.workspace(), Permissions::from_mode(0o3777))?;
        Ok(Place::at(caller.workspace()))
    }),
];

/// A directory of the caller's in a place that the sandbox hides.
pub(crate) fn scratch(caller: &Caller, place: &str) -> io::Result<tempfile::TempDir> {
    let directory = tempfile::Builder::new().prefix("dsh-workspace-").tempdir_in(place)?;
    fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
    caller.persona().own(directory.path())?;
    Ok(directory)
}

/// Below a directory of which the sandbox has its own, that is an empty one: only the workspace is
/// shown. What lies beside it there is the scratch, what lies between is read-only.
fn in_scratch(caller: &Caller, place: &str, below: &str) -> io::Result<Place> {
    let directory = scratch(caller, place)?;
    let workspace = make_all(caller, directory.path(), below.as_ref())?;
    let beside = if below.is_empty() { Fate::Scratch } else { READ_ONLY };
    Ok(Place::at(workspace).and("..", beside, beside).keep(directory))
}

fn called(caller: &Caller, name: &[u8]) -> io::Result<Place> {
    Ok(Place::at(caller.make_dir(OsStr::from_bytes(name))?))
}

/// A path of 4,000 bytes; the kernel takes 4,095.
fn long(base: PathBuf, caller: &Caller) -> io::Result<Place> {
    let mut relative = PathBuf::new();
    while let left @ 2.. =
        4000_usize.saturating_sub(base.as_os_str().len() + relative.as_os_str().len())
    {
        relative.push(OsString::from_vec(vec![b'd'; (left - 1).min(200)]));
    }
    Ok(Place::at(make_all(caller, &base, &relative)?))
}

fn make_all(caller: &Caller, base: &Path, relative: &Path) -> io::Result<PathBuf> {
    let mut directory = base.to_owned();
    for name in relative {
        directory.push(name);
        fs::create_dir(&directory)?;
        caller.persona().own(&directory)?;
    }
    Ok(directory)
}

/// Root writes there as outside; an ordinary user cannot, and can run commands there all the same.
fn of_another_owner(caller: &Caller) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can give a directory away");
    }
    chown(&caller.workspace(), Some(Uid::from_raw(1234)), Some(Gid::from_raw(1234)))?;
    let fate = if caller.persona().is_root() { Fate::Kept } else { DENIED };
    let mut problems = Problems::default();
    Place::at(caller.workspace()).and(".", READ_ONLY, fate).check(caller, &mut problems)?;
    problems.verdict(&"a workspace of uid 1234")
}

/// The command goes on in a directory without a name, where nothing can be made any more (ENOENT),
/// and ends in its own way.
fn deleted_during_the_run(caller: &Caller) -> Verdict {
    const SCRIPT: &str = "echo ready >&2; read; { : >new; } 2>&1 | sed 's/.*: //'; \
                          { : >\"$1\"; } 2>&1 | sed 's/.*: //'; exit 7";
    for mode in CONFINED {
        let workspace = caller.make_dir("doomed")?;
        let before = Snapshot::of(&caller.path("home"))?;
        let mut command = caller.dsh_run(["--mode", mode, "--", "bash", "-c", SCRIPT, "bash"]);
        command.arg(caller.path("home/new")).current_dir(&workspace);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        assert!(running.wait_for_stderr("ready")?, "{mode}: it ended early");
        fs::remove_dir(&workspace)?;
        drop(running.stdin());
        let ended = running.finish()?;
        assert_eq!(ended.status.code(), Some(7), "{mode}: {}", ended.stderr);
        let expected = "No such file or directory\nRead-only file system\n";
        assert_eq!(ended.stdout, expected, "{mode}: {}", ended.stderr);
        assert_eq!(Snapshot::of(&caller.path("home"))?.changes_since(&before), [""; 0], "{mode}");
        assert!(!workspace.exists(), "{mode}: it came back");
    }
    Ok(Completion::Completed)
}
