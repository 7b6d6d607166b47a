//! The operations made by the probe: inside the sandbox, and outside on the same trees made anew.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_facts::{Facts, SandboxMode};
use nix::mount::{MsFlags, mount};
use nix::unistd::geteuid;

use crate::disk;
use crate::draw::Drawn;
use crate::ground::{Ground, Part};
use crate::spelled::spelled;
use crate::support::caller::PATH;
use crate::support::persona::Persona;
use crate::support::private_mounts::with_private_mounts;
use crate::support::running::Running;
use crate::support::snapshot::Snapshot;
use crate::support::stage::Programs;

/// What became of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// `ok` or the errno, each time it was made; `fd:EACCES` and the like where it was not.
    pub(crate) results: Vec<String>,
    /// Where the files that it names were; none where the way there is closed.
    pub(crate) places: Vec<Option<Vec<u8>>>,
}

/// Both runs of the same operations.
pub(crate) struct Both {
    pub(crate) inside: Vec<Answer>,
    pub(crate) outside: Vec<Answer>,
    pub(crate) facts: Facts,
    /// What has changed on the host by the run inside.
    pub(crate) changes: Vec<String>,
}

pub(crate) struct Runner<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) persona: Persona,
    pub(crate) mode: SandboxMode,
    pub(crate) ground: &'a Ground,
    /// A directory for what is not part of the trees.
    pub(crate) desk: &'a Path,
}

impl Runner<'_> {
    pub(crate) fn run(&self, drawn: &[Drawn]) -> io::Result<Both> {
        let script = self.desk.join("script");
        let lines: String = drawn.iter().map(|one| format!("{}\n", one.line)).collect();
        fs::write(&script, lines)?;
        self.make(drawn)?;
        let before = self.look(drawn)?;
        let inside = answers(&self.inside(&script)?)?;
        let after = self.look(drawn)?;
        let changes = match (before, after) {
            (Some(before), Some(after)) => after.changes_since(&before),
            _ => Vec::new(),
        };
        disk::remove(self.ground.base())?;
        let facts = serde_json::from_slice(&fs::read(self.facts())?)?;
        self.make(drawn)?;
        let outside = answers(&self.outside(&script)?)?;
        disk::remove(self.ground.base())?;
        Ok(Both { inside, outside, facts, changes })
    }

    fn facts(&self) -> PathBuf {
        self.desk.join("facts.json")
    }

    fn make(&self, drawn: &[Drawn]) -> io::Result<()> {
        disk::make(self.ground, drawn, self.persona.id(), |attributes| {
            let script = self.desk.join("attributes");
            fs::write(&script, attributes)?;
            let mut command = Command::new(self.programs.dsh_probe());
            command.arg("oracle").arg(&script).stdin(Stdio::null());
            let output = command.output()?;
            let made = String::from_utf8_lossy(&output.stdout).contains("\\nok \\n");
            // Where the file system has none, they are missing inside as outside.
            if output.status.success() && (made || attributes.is_empty()) {
                return Ok(());
            }
            Err(io::Error::other(format!("no attributes: {output:?}")))
        })
    }

    /// What must not change; only root can look at all of it.
    fn look(&self, drawn: &[Drawn]) -> io::Result<Option<Snapshot>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let mut left_out = disk::linked(drawn);
        left_out.extend(self.ground.streams());
        Snapshot::outside(&self.ground.part(Part::Host), &left_out).map(Some)
    }

    fn inside(&self, script: &Path) -> io::Result<String> {
        let mut command = Command::new(self.programs.dsh_run());
        command.args(["--mode", self.mode.as_str(), "--observe", "all", "--workspace"]);
        command.arg(self.ground.part(Part::Work));
        if self.mode == SandboxMode::WorkspaceWrite {
            command.arg("--writable").arg(self.ground.part(Part::Second));
        }
        command.arg("--facts").arg(self.facts()).arg("--");
        command.arg(self.programs.dsh_probe()).arg("oracle").arg(script);
        self.finish(command)
    }

    /// Where the test is root, the trees have a mount of their own, and the rest is read-only. A user
    /// changes only what is its own anyway.
    fn outside(&self, script: &Path) -> io::Result<String> {
        let mut command = Command::new(self.programs.dsh_probe());
        command.arg("oracle").arg(script);
        if !geteuid().is_root() {
            return self.finish(command);
        }
        with_private_mounts(|| {
            protect_host(self.desk)?;
            self.finish(command)
        })
    }

    fn finish(&self, mut command: Command) -> io::Result<String> {
        let [input, error] = self.ground.streams();
        let error = OpenOptions::new().read(true).append(true).open(error)?;
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/nonexistent")
            .current_dir(self.ground.part(Part::Work))
            .stdin(File::open(input)?)
            .stdout(Stdio::piped())
            .stderr(error);
        self.persona.dress(&mut command);
        let ended = Running::start(&mut command)?.within(Duration::from_secs(120)).finish()?;
        if !ended.status.success() {
            let said = fs::read_to_string(&self.ground.streams()[1])?;
            let status = ended.status;
            return Err(io::Error::other(format!("{command:?}: {status}, {}{said}", ended.stdout)));
        }
        Ok(ended.stdout)
    }
}

/// Leaves nothing of this mount namespace writable but a /tmp of its own, /proc, whose files are those
/// of processes, and what is mounted with the desk.
fn protect_host(desk: &Path) -> io::Result<()> {
    let none = None::<&str>;
    let change = MsFlags::MS_BIND | MsFlags::MS_REMOUNT;
    for line in fs::read_to_string("/proc/self/mountinfo")?.lines() {
        let place = Path::new(line.split(' ').nth(4).unwrap_or_default());
        if place == Path::new("/proc") || (place != "/" && desk.starts_with(place)) {
            continue;
        }
        // One that another covers cannot be reached, here as there.
        let protected = mount(none, place, none, change | MsFlags::MS_RDONLY, none);
        if ["/", "/dev"].map(Path::new).contains(&place) {
            protected?;
        }
    }
    mount(Some("none"), "/tmp", Some("tmpfs"), MsFlags::empty(), none)?;
    Ok(())
}

/// The probe's line for each operation.
fn answers(stdout: &str) -> io::Result<Vec<Answer>> {
    let said: serde_json::Value = serde_json::from_str(stdout)?;
    let answer = |line: &str| {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let results = words.next().unwrap_or_default().split(',').map(str::to_owned).collect();
        let places = words.map(|word| spelled(word).filter(|_| word != "-")).collect();
        Answer { results, places }
    };
    Ok(said["detail"].as_str().unwrap_or_default().lines().map(answer).collect())
}

/// A directory for scripts and facts, which the persona can read and write.
pub(crate) fn make_desk(base: &Path, persona: Persona) -> io::Result<PathBuf> {
    fs::set_permissions(base, fs::Permissions::from_mode(0o755))?;
    persona.own(base)?;
    let desk = base.join("desk");
    fs::create_dir(&desk)?;
    persona.own(&desk)?;
    Ok(desk)
}
