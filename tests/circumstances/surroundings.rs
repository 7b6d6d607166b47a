//! Everything in which a run could leave something: files, mounts, IPC objects, cgroups, processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use crate::support::caller::Caller;
use crate::support::cases::Verdict;
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::processes::{Process, marked};
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;

/// How long the rest of a killed run may take to end, on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A caller's directories, /tmp and /dev/shm, and what else there is. (An anonymous file lives as long
/// as a process that holds it, so that no process is left says the same of these.)
struct Surroundings {
    files: Vec<Snapshot>,
    mounts: String,
    ipc: String,
    cgroups: Vec<PathBuf>,
}

/// Checks that a test leaves nothing.
pub(crate) fn leaves_nothing(
    caller: &Caller,
    test: impl FnOnce(&mut Problems) -> io::Result<()> + Send,
) -> Verdict {
    if let Some(reason) = obstacle() {
        return skip(reason);
    }
    let (mut problems, changes) = changes_by(caller, || {
        let mut problems = Problems::default();
        test(&mut problems)?;
        let left = left_after(caller, PATIENCE);
        problems.check(left.is_empty(), || format!("processes: {left:?}"));
        Ok(problems)
    })?;
    problems.equal("changes", changes, vec![]);
    problems.verdict(&"surroundings of its own")
}

/// Why nothing can be kept apart here, if so.
pub(crate) fn obstacle() -> Option<&'static str> {
    (!geteuid().is_root()).then_some("only root can have a /tmp of its own for others")
}

/// Does the work where nobody else leaves anything in /tmp, /dev/shm or the IPC namespace, and says
/// what has changed.
pub(crate) fn changes_by<T: Send>(
    caller: &Caller,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<(T, Vec<String>)> {
    with_private_mounts(|| {
        unshare(CloneFlags::CLONE_NEWIPC)?;
        prepare(caller)?;
        let before = Surroundings::look(caller)?;
        let done = work()?;
        Ok((done, Surroundings::look(caller)?.changes_since(&before)))
    })
}

/// With something in every directory, so that a change of what is there is seen too.
fn prepare(caller: &Caller) -> io::Result<()> {
    for place in ["/tmp", "/dev/shm"] {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("own"), place, Some("tmpfs"), flags, Some("mode=1777"))?;
        fs::write(Path::new(place).join("file"), "the host's\n")?;
        fs::create_dir(Path::new(place).join("directory"))?;
    }
    for name in ["workspace/.git", "workspace/source", "home/.config", "report"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/source/file", "content\n")?;
    caller.make_file("home/.profile", "content\n")?;
    // Where the message queues of the IPC namespace are files.
    let queues = caller.make_dir("queues")?;
    mount(Some("own"), &queues, Some("mqueue"), MsFlags::empty(), None::<&str>)?;
    Ok(())
}

impl Surroundings {
    fn look(caller: &Caller) -> io::Result<Self> {
        let places = [caller.path(""), "/tmp".into(), "/dev/shm".into()];
        let tables = ["shm", "sem", "msg"].map(|kind| format!("/proc/sysvipc/{kind}"));
        Ok(Self {
            files: places.iter().map(|place| Snapshot::of(place)).collect::<io::Result<_>>()?,
            mounts: fs::read_to_string("/proc/thread-self/mountinfo")?,
            ipc: tables.iter().map(fs::read_to_string).collect::<io::Result<_>>()?,
            cgroups: cgroups(Path::new("/sys/fs/cgroup")),
        })
    }

    fn changes_since(&self, before: &Self) -> Vec<String> {
        let files = self.files.iter().zip(&before.files);
        let mut changes: Vec<String> =
            files.flat_map(|(now, before)| now.changes_since(before)).collect();
        for (what, now, before) in
            [("mounts", &self.mounts, &before.mounts), ("IPC", &self.ipc, &before.ipc)]
        {
            if now != before {
                changes.push(format!("{what}: {before} became {now}"));
            }
        }
        if self.cgroups != before.cgroups {
            changes.push(format!("cgroups: {:?} became {:?}", before.cgroups, self.cgroups));
        }
        changes
    }
}

/// Control groups with a name of ours. Others come and go with services and containers.
fn cgroups(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if entry.file_name().to_string_lossy().contains("dsh") {
                found.push(entry.path());
            }
            found.extend(cgroups(&entry.path()));
        }
    }
    found.sort();
    found
}

/// Processes of the caller's runs, as soon as there are none or once patience has passed. All of them
/// have its directory among their words.
pub(crate) fn left_after(caller: &Caller, patience: Duration) -> Vec<Process> {
    let mark = caller.path("").to_string_lossy().into_owned();
    let end = Instant::now() + patience;
    loop {
        let left = marked(&mark);
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
