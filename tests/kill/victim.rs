//! A run that is about to be ended, with a command that would go on for ever.

use std::fs;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use dsh_facts::Facts;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::fixture::Fixture;
use crate::support::persona::Persona;
use crate::support::processes::{Process, marked};
use crate::support::stage::{Programs, Stage, dsh_run, shell_status};

/// Where a command runs.
#[derive(Clone)]
pub(crate) enum Place {
    /// On this host, with a pid namespace.
    Here(Persona),
    /// On a host without.
    WithoutPidNamespace(Stage),
}

/// How long a killed run may take to be gone.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

impl Place {
    /// Every place, in its order as a test's name.
    pub(crate) fn all() -> [Self; 3] {
        [
            Self::Here(Persona::ROOT),
            Self::Here(Persona::ordinary()),
            Self::WithoutPidNamespace(Stage::new(
                &["-s", "docker", "-m", "-c", "none", "-n"],
                1000,
            )),
        ]
    }

    /// As part of a test's name.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Here(persona) => persona.label(),
            Self::WithoutPidNamespace(_) => "without-pid-namespace".to_owned(),
        }
    }

    /// Why nothing can be run there, if so.
    pub(crate) fn obstacle(&self) -> Option<String> {
        match self {
            Self::Here(persona) => persona.obstacle(),
            Self::WithoutPidNamespace(_) => Stage::obstacle().map(str::to_owned),
        }
    }

    fn uid(&self) -> u32 {
        match self {
            Self::Here(persona) => persona.id(),
            Self::WithoutPidNamespace(stage) => stage.uid,
        }
    }
}

/// Daemons that append to a file: two that stay, one that is another process each time. The last
/// word of each is the file, by which they are found.
pub(crate) const DAEMONS: &str = r#"
ticks=$PWD/ticks
stay='trap "" TERM HUP INT; while :; do echo >>"$0"; sleep 0.05; done'
hop='echo >>"$0"; sleep 0.02; setsid sh -c "$1" "$0" "$1" & exit'
(setsid sh -c "$stay" "$ticks" &)
(setsid sh -c 'trap "" TERM HUP INT; (setsid sh -c "$1" "$0" &)' "$ticks" "$stay" &)
(setsid sh -c "$hop" "$ticks" "$hop" &)
"#;

/// A stage's pid 1, which must not end with dsh-run: with it would end what dsh-run has left.
const STAY: &str = r#""$@" </dev/null; echo "$?"; read -r go"#;

/// The run.
pub(crate) struct Victim {
    pub(crate) fixture: Fixture,
    child: Child,
    stage: Option<ChildStdin>,
    dsh_run: Option<Pid>,
}

impl Victim {
    /// Starts the command, a text for bash, in workspace-write.
    pub(crate) fn start(
        programs: &Programs,
        place: &Place,
        options: &[&str],
        text: &str,
    ) -> io::Result<Self> {
        let fixture = Fixture::new(place.uid())?;
        let arguments: Vec<&str> =
            [&["--mode", "workspace-write"], options, &["-c", text]].concat();
        let words = dsh_run(programs, &fixture, &arguments);
        let mut command = match place {
            Place::Here(persona) => {
                let mut command = Command::new(programs.dsh_run());
                persona.dress(&mut command);
                command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
                command
            }
            Place::WithoutPidNamespace(stage) => {
                let mut command = stage.command(programs)?;
                command.args(["sh", "-c", STAY, "stay"]).args(&words);
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
                command
            }
        };
        let errors = fs::File::create(fixture.report().join("stderr"))?;
        let mut child = command.current_dir(fixture.workspace()).stderr(errors).spawn()?;
        let stage = child.stdin.take();
        let own = i32::try_from(child.id()).map_err(io::Error::other)?;
        let dsh_run = stage.is_none().then(|| Pid::from_raw(own));
        Ok(Self { fixture, child, stage, dsh_run })
    }

    /// The file that the daemons let grow.
    pub(crate) fn ticks(&self) -> PathBuf {
        self.fixture.workspace().join("ticks")
    }

    /// How much they have written so far.
    pub(crate) fn written(&self) -> u64 {
        self.ticks().metadata().map_or(0, |metadata| metadata.len())
    }

    /// What dsh-run has complained of.
    pub(crate) fn stderr(&self) -> io::Result<String> {
        fs::read_to_string(self.fixture.report().join("stderr"))
    }

    /// The facts of the run.
    pub(crate) fn facts(&self) -> io::Result<Facts> {
        Ok(serde_json::from_slice(&fs::read(self.fixture.facts())?)?)
    }

    /// Waits until the command runs.
    pub(crate) fn wait_started(&mut self) -> io::Result<()> {
        self.wait_for("the daemons write", |victim| (victim.written() > 0).then_some(()))
    }

    /// dsh-run's own pid, as this host sees it; on a stage once it has come into being.
    pub(crate) fn pid(&mut self) -> io::Result<Pid> {
        if let Some(pid) = self.dsh_run {
            return Ok(pid);
        }
        // The stage's pid 1 has its words among its own; the sandbox's processes have all of them,
        // but other names and parents.
        let found = self.wait_for("dsh-run starts", |victim| {
            let stage = victim.stage_processes();
            let all = marked(&victim.mark());
            all.into_iter().find(|one| one.name == "dsh-run" && stage.contains(&one.parent))
        })?;
        self.dsh_run = Some(found.pid);
        Ok(found.pid)
    }

    /// A process of the sandbox, by its name.
    pub(crate) fn part(&mut self, name: &str) -> io::Result<Pid> {
        let found = self
            .wait_for(name, |victim| victim.processes().into_iter().find(|one| one.name == name))?;
        Ok(found.pid)
    }

    /// Sends a signal to one of its processes, which may just have ended.
    pub(crate) fn strike(&self, target: Pid, signal: Signal) -> io::Result<()> {
        match kill(target, signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Everything that belongs to the run.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let stage = self.stage_processes();
        marked(&self.mark()).into_iter().filter(|one| !stage.contains(&one.pid)).collect()
    }

    /// Waits for dsh-run to end. The status is as a shell has it.
    pub(crate) fn wait(&mut self) -> io::Result<i32> {
        if self.stage.is_none() {
            let end = |victim: &mut Self| victim.child.try_wait().transpose();
            let status = self.wait_for("dsh-run ends", end)??;
            return Ok(shell_status(status));
        }
        // The stage's shell says it, in one line.
        let output = self.child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        let mut line = String::new();
        io::BufReader::new(output).read_line(&mut line)?;
        line.trim().parse().map_err(io::Error::other)
    }

    /// What is left of the run once the grace has passed; nothing is left as soon as nothing is.
    pub(crate) fn left_after(&self, grace: Duration) -> Vec<Process> {
        let end = Instant::now() + grace;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() >= end {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn mark(&self) -> String {
        self.fixture.top().to_string_lossy().into_owned()
    }

    /// hostsim and its pid 1: not the run's.
    fn stage_processes(&self) -> Vec<Pid> {
        let Some(own) = self.stage.as_ref().and_then(|_| i32::try_from(self.child.id()).ok())
        else {
            return Vec::new();
        };
        let hostsim = Pid::from_raw(own);
        let children = marked(&self.mark()).into_iter().filter(|one| one.parent == hostsim);
        children.map(|one| one.pid).chain([hostsim]).collect()
    }

    fn wait_for<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> io::Result<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            if Instant::now() > end {
                let (left, said) = (self.processes(), self.stderr());
                return Err(io::Error::other(format!("waited for: {what}; {left:?} {said:?}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whatever a test finds out, nothing of the run stays behind. Only processes with its mark end.
impl Drop for Victim {
    fn drop(&mut self) {
        self.stage = None;
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        for left in self.processes() {
            let _gone = kill(left.pid, Signal::SIGKILL);
        }
    }
}
