//! The host that an attack could damage: throwaway files, sockets, processes and IPC objects,
//! looked at before and after.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::bystanders::Bystanders;
use crate::support::binaries::Binaries;
use crate::support::persona::Persona;
use crate::support::snapshot::Snapshot;
use crate::table::{Attack, Rung};

/// The fixture of one test.
pub(crate) struct Host {
    /// Files of the host outside every writable root, owned by the persona so that only the sandbox
    /// is in the way.
    pub(crate) files: PathBuf,
    /// The workspace.
    pub(crate) workspace: PathBuf,
    /// A directory below /tmp, which the sandbox replaces by its own.
    pub(crate) hidden: PathBuf,
    /// Where stdout, stderr and facts may be written: a grant, so changes here are no damage.
    pub(crate) granted: PathBuf,
    /// Below /tmp: the directory that holds the workspace's parent.
    top: PathBuf,
    binaries: PathBuf,
    bystanders: Bystanders,
    /// Both ends of the FIFO, so that opening either never waits.
    _fifo: File,
    _dirs: Vec<TempDir>,
}

/// What the host was like at one moment.
pub(crate) struct State {
    files: Snapshot,
    hidden: Snapshot,
    workspace: Snapshot,
    kernel: BTreeMap<&'static str, String>,
}

/// Settings and tables of the kernel that belong to the whole host.
const KERNEL: [&str; 7] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    "/proc/sys/user/max_user_namespaces",
    "/proc/swaps",
    "/proc/thread-self/mountinfo",
];

impl Host {
    /// Makes the fixture.
    pub(crate) fn new(attack: &Attack, persona: Persona, binaries: &Binaries) -> io::Result<Self> {
        let dir = fixture_dir("/var/tmp")?;
        let (files, granted) = (dir.path().join("host"), dir.path().join("granted"));
        let hidden = fixture_dir("/tmp")?;
        fs::write(hidden.path().join("file"), "the host's hidden file\n")?;
        let mut dirs = vec![dir, hidden];
        let (mut top, hidden) = (dirs[0].path().join("w"), dirs[1].path().to_path_buf());
        if attack.below_tmp {
            let below_tmp = fixture_dir("/tmp")?;
            persona.own(below_tmp.path())?;
            top = below_tmp.path().to_path_buf();
            dirs.push(below_tmp);
        }
        let workspace = top.join("parent/workspace");
        fs::create_dir_all(&workspace)?;
        for dir in [&files, &granted] {
            fs::create_dir(dir)?;
        }
        for name in ["stdout", "stderr", "facts"] {
            fs::write(granted.join(name), "")?;
        }
        fill_host(&files)?;
        fill_workspace(&workspace, &files, &granted)?;
        if attack.nodes {
            make_nodes(&files)?;
            make_nodes(&workspace)?;
        }
        for root in [&files, &hidden, &granted, &top] {
            for (path, _) in Snapshot::of(root)?.entries() {
                persona.own(path)?;
            }
        }
        let bystanders = Bystanders::gather(&files, persona, binaries)?;
        let binaries = binaries.dir().to_path_buf();
        let fifo = File::options().read(true).write(true).open(files.join("fifo"))?;
        Ok(Self {
            files,
            workspace,
            hidden,
            granted,
            top,
            binaries,
            bystanders,
            _fifo: fifo,
            _dirs: dirs,
        })
    }

    /// Replaces the placeholders of the table.
    pub(crate) fn expand(&self, word: &str) -> String {
        let path = |path: &Path| path.display().to_string();
        let mut values = self.bystanders.placeholders();
        values.extend([
            ("host", path(&self.files)),
            ("workspace", path(&self.workspace)),
            ("top", path(&self.top)),
            ("binaries", path(&self.binaries)),
            ("disk", disk()),
        ]);
        values.iter().fold(word.to_owned(), |word, (name, value)| {
            word.replace(&format!("{{{name}}}"), value)
        })
    }

    /// The process group that dsh-run starts in: that of a process which must survive.
    pub(crate) fn group(&self) -> i32 {
        self.bystanders.group()
    }

    /// The terminal that can be a command's stdin.
    pub(crate) fn terminal(&self) -> io::Result<std::os::fd::OwnedFd> {
        self.bystanders.terminal()
    }

    /// Looks at everything that does not change by itself.
    pub(crate) fn state(&self) -> io::Result<State> {
        let read = |path| (path, fs::read_to_string(path).unwrap_or_default());
        Ok(State {
            files: Snapshot::of(&self.files)?,
            hidden: Snapshot::of(&self.hidden)?,
            workspace: Snapshot::of(&self.top)?,
            kernel: KERNEL.into_iter().map(read).collect(),
        })
    }

    /// Every trace that the attack has left where it should have left none.
    pub(crate) fn damage_since(&mut self, before: &State, rung: Rung) -> io::Result<Vec<String>> {
        let now = self.state()?;
        let mut damage = now.files.changes_since(&before.files);
        damage.extend(now.hidden.changes_since(&before.hidden));
        match rung {
            Rung::ReadOnly => damage.extend(now.workspace.changes_since(&before.workspace)),
            Rung::WorkspaceWrite => damage.extend(planted(&now.workspace, &before.workspace)),
        }
        for (path, value) in &before.kernel {
            if now.kernel.get(path) != Some(value) {
                damage.push(format!("{path} was {value:?} and is {:?}", now.kernel.get(path)));
            }
        }
        damage.extend(planted(&Snapshot::of(&self.granted)?, &before.files));
        damage.extend(self.bystanders.harm()?);
        Ok(damage)
    }
}

/// What must not be in a directory that the command may write to.
fn planted(now: &Snapshot, before: &Snapshot) -> Vec<String> {
    let old: BTreeMap<_, _> = before.entries().collect();
    let dangerous = now.entries().filter(|(path, entry)| {
        entry.is_dangerous() && old.get(path).is_none_or(|old| old.mode != entry.mode)
    });
    dangerous.map(|(path, entry)| format!("{} has mode {:o}", path.display(), entry.mode)).collect()
}

fn fixture_dir(parent: &str) -> io::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("dsh-escape-").tempdir_in(parent)?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

fn fill_host(files: &Path) -> io::Result<()> {
    fs::create_dir(files.join("dir"))?;
    fs::create_dir(files.join("mounted"))?;
    for name in ["file", "other", "dir/inner", "stdin"] {
        fs::write(files.join(name), format!("the host's {name}\n"))?;
    }
    set_attribute(&files.join("file"))?;
    mkfifo(&files.join("fifo"), Mode::from_bits_truncate(0o666))?;
    symlink("file", files.join("link"))
}

/// Gives the file an extended attribute that could be taken away, where the file system has such.
fn set_attribute(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both names end with a NUL, and the kernel reads one byte of the value.
    let set = unsafe {
        nix::libc::setxattr(path.as_ptr(), c"user.dsh".as_ptr(), b"1".as_ptr().cast(), 1, 0)
    };
    match Errno::result(set) {
        Ok(_) | Err(Errno::EOPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn fill_workspace(workspace: &Path, files: &Path, granted: &Path) -> io::Result<()> {
    fs::create_dir(workspace.join("mounted"))?;
    for name in ["file", "mounted/own"] {
        fs::write(workspace.join(name), format!("the workspace's {name}\n"))?;
    }
    symlink(files.join("file"), workspace.join("link"))?;
    symlink(files, workspace.join("dirlink"))?;
    symlink(granted, workspace.join("granted"))
}

/// The null device, a loop device without a file and the kernel's log: nodes that do no harm if
/// they can be opened.
fn make_nodes(dir: &Path) -> io::Result<()> {
    for (name, kind, device) in [
        ("char-device", SFlag::S_IFCHR, makedev(1, 3)),
        ("block-device", SFlag::S_IFBLK, makedev(7, 0)),
        ("log-device", SFlag::S_IFCHR, makedev(1, 11)),
    ] {
        let path = dir.join(name);
        mknod(&path, kind, Mode::empty(), device)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    }
    Ok(())
}

/// A disk of the host; without one, the name of a disk that any host could have.
fn disk() -> String {
    let partitions = fs::read_to_string("/proc/partitions").unwrap_or_default();
    let names = partitions.lines().filter_map(|line| line.split_whitespace().nth(3));
    let disk =
        names.skip(1).map(|name| format!("/dev/{name}")).find(|path| Path::new(path).exists());
    disk.unwrap_or_else(|| "/dev/sda".to_owned())
}
