//! Workspaces that are mounts or hold some, each in a mount namespace of the test's own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::unistd::geteuid;

use crate::place::{Fate, Place, READ_ONLY};
use crate::root_shell::shell_of_root;
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::workspaces::scratch;
use crate::{CONFINED, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let kinds = KINDS.iter().flat_map(|&(name, make)| {
        for_each_user(&format!("mounted::{name}"), move |caller| {
            // Where it is not mounted, the place can be removed.
            let mut made = None;
            in_private(|| {
                let mut problems = Problems::default();
                made.insert(make(caller)?).check(caller, &mut problems)?;
                Ok(problems)
            })
        })
    });
    kinds
        .chain(for_each_user("mounted::covered", |caller| in_private(|| covered(caller))))
        .chain(for_each_user("mounted::many-files", |caller| in_private(|| many_files(caller))))
        .collect()
}

/// Runs the test where its mounts are nobody else's.
fn in_private(test: impl FnOnce() -> io::Result<Problems> + Send) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can mount for others");
    }
    with_private_mounts(test)?.verdict(&"a mount namespace of its own")
}

type Make = fn(&Caller) -> io::Result<Place>;

const KINDS: &[(&str, Make)] = &[
    ("tmpfs", |caller| {
        tmpfs(caller, &caller.workspace())?;
        Ok(Place::at(caller.workspace()))
    }),
    ("tmpfs-below-tmp", |caller| {
        let directory = scratch(caller, "/tmp")?;
        let workspace = directory.path().join("mount");
        fs::create_dir(&workspace)?;
        tmpfs(caller, &workspace)?;
        Ok(Place::at(&workspace).and("..", READ_ONLY, READ_ONLY).keep(directory))
    }),
    ("with-flags", |caller| {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        tmpfs_with(caller, &caller.workspace(), flags | MsFlags::MS_NOATIME)?;
        Ok(Place::at(caller.workspace()))
    }),
    ("bind-mount", |caller| {
        bind(&caller.make_dir("source")?, &caller.workspace())?;
        Ok(Place::at(caller.workspace()))
    }),
    ("bind-mount-of-itself-twice", |caller| {
        bind(&caller.workspace(), &caller.workspace())?;
        bind(&caller.workspace(), &caller.workspace())?;
        Ok(Place::at(caller.workspace()))
    }),
    ("overlay", |caller| {
        overlay(caller)?;
        Ok(Place::at(caller.workspace()).and("lower", READ_ONLY, Fate::Kept))
    }),
    ("read-only-mount", |caller| {
        read_only_bind(&caller.workspace())?;
        Ok(Place::at(caller.workspace()).and(".", READ_ONLY, READ_ONLY))
    }),
    ("submounts", |caller| {
        let [writable, nested, sealed, linked] =
            ["w", "w/nested", "sealed", "linked"].map(|name| caller.path("workspace").join(name));
        for place in [&writable, &nested] {
            fs::create_dir(place)?;
            tmpfs(caller, place)?;
        }
        fs::create_dir(&sealed)?;
        read_only_bind(&sealed)?;
        fs::create_dir(&linked)?;
        bind(&caller.make_dir("source")?, &linked)?;
        Ok(Place::at(caller.workspace())
            .and("w", READ_ONLY, Fate::Kept)
            .and("w/nested", READ_ONLY, Fate::Kept)
            .and("sealed", READ_ONLY, READ_ONLY)
            .and("linked", READ_ONLY, Fate::Kept))
    }),
    ("submounts-with-odd-names", |caller| {
        // The table of mounts escapes all but the last. The queues are the kernel's, not files.
        let names = [&b"a blank"[..], b"a\ttab\nand a line", b"back\\slash\\040", b"\xff\xfe"];
        let mut place = Place::at(caller.workspace());
        for name in names.map(OsStr::from_bytes) {
            let directory = caller.workspace().join(name);
            let queues = directory.join("queues");
            fs::create_dir(&directory)?;
            tmpfs(caller, &directory)?;
            fs::create_dir(&queues)?;
            mount(Some("own"), &queues, Some("mqueue"), MsFlags::empty(), None::<&str>)?;
            place = place.and(name, READ_ONLY, Fate::Kept);
            place = place.and(Path::new(name).join("queues"), READ_ONLY, READ_ONLY);
        }
        Ok(place)
    }),
    ("many-submounts", |caller| {
        let mut place = Place::at(caller.workspace());
        for number in 0..200 {
            let directory = caller.workspace().join(format!("m{number}"));
            fs::create_dir(&directory)?;
            tmpfs(caller, &directory)?;
        }
        for name in ["m0", "m100", "m199"] {
            place = place.and(name, READ_ONLY, Fate::Kept);
        }
        Ok(place)
    }),
];

fn tmpfs(caller: &Caller, place: &Path) -> io::Result<()> {
    tmpfs_with(caller, place, MsFlags::empty())
}

fn tmpfs_with(caller: &Caller, place: &Path, flags: MsFlags) -> io::Result<()> {
    mount(Some("workspace"), place, Some("tmpfs"), flags, Some("mode=755"))?;
    caller.persona().own(place)
}

fn bind(source: &Path, place: &Path) -> io::Result<()> {
    Ok(mount(Some(source), place, None::<&str>, MsFlags::MS_BIND, None::<&str>)?)
}

fn read_only_bind(place: &Path) -> io::Result<()> {
    bind(place, place)?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    Ok(mount(None::<&str>, place, None::<&str>, flags, None::<&str>)?)
}

/// Layers on a tmpfs: an overlay cannot lie on an overlay, such as a container's root.
fn overlay(caller: &Caller) -> io::Result<()> {
    let base = caller.make_dir("layers")?;
    tmpfs(caller, &base)?;
    for name in ["layers/lower", "layers/lower/lower", "layers/upper", "layers/work"] {
        caller.make_dir(name)?;
    }
    caller.make_file("layers/lower/lower/old", "below\n")?;
    let layer = |name: &str| base.join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        layer("lower"),
        layer("upper"),
        layer("work")
    );
    let none = MsFlags::empty();
    Ok(mount(Some("overlay"), &caller.workspace(), Some("overlay"), none, Some(&*options))?)
}

/// The caller's directory is still there, and its name leads to another: that is never what the
/// caller meant. (ESTALE)
fn covered(caller: &Caller) -> io::Result<Problems> {
    let mut problems = Problems::default();
    for mode in CONFINED {
        let mut command = shell_of_root(caller, "mount -t tmpfs cover \"$PWD\"; exec \"$@\"");
        let ended = finish(command.args(["--mode", mode, "--", "touch", "new"]))?;
        problems.equal("status", ended.status.code(), Some(125));
        problems.equal("lines", ended.stderr.lines().count(), 1);
        problems.contains("stderr", &ended.stderr, &caller.workspace().display().to_string());
        problems.equal("files", fs::read_dir(caller.workspace())?.count(), 0);
    }
    Ok(problems)
}

/// The start takes no longer than elsewhere because nothing looks through the workspace: the time of
/// last access of its directories stays what it was.
fn many_files(caller: &Caller) -> io::Result<Problems> {
    const DIRECTORIES: usize = 3;
    const FILES: usize = 100_000;
    let mut problems = Problems::default();
    tmpfs_with(caller, &caller.workspace(), MsFlags::MS_STRICTATIME)?;
    let mut directories: Vec<PathBuf> = Vec::new();
    for number in 0..DIRECTORIES {
        let directory = caller.make_dir(format!("workspace/{number}"))?;
        // Names of one file: an inode each would take memory and time.
        let first = directory.join("0");
        File::create(&first)?;
        for file in 1..FILES {
            fs::hard_link(&first, directory.join(file.to_string()))?;
        }
        directories.push(directory);
    }
    directories.push(caller.workspace());
    let last_looks = || -> io::Result<Vec<(i64, i64)>> {
        let looks =
            directories.iter().map(|one| one.metadata().map(|m| (m.atime(), m.atime_nsec())));
        looks.collect()
    };
    let before = last_looks()?;
    Place::at(caller.workspace())
        .and("0", READ_ONLY, Fate::Kept)
        .unwatched()
        .check(caller, &mut problems)?;
    problems.equal("last looks", last_looks()?, before.clone());
    // Without this, that nobody looked would prove nothing.
    fs::read_dir(&directories[0])?.count();
    problems.check(last_looks()? != before, || "a look leaves no trace".to_owned());
    Ok(problems)
}
