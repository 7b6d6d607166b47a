//! Makes one attempt inside the sandbox and compares what happened with what must happen.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use serde::Deserialize;

use crate::host::Host;
use crate::streams::{STDOUT_FILE, connect};
use crate::support::binaries::Binaries;
use crate::support::kernel;
use crate::support::persona::Persona;
use crate::support::running::{Finished, Running};
use crate::table::{Attack, Expectation, Mounts, NO_ERRNO, REFUSED, Rung, Stream};

/// One line of the table: an attack on one rung by one user.
pub(crate) struct Case {
    pub(crate) attack: Attack,
    pub(crate) rung: Rung,
    pub(crate) persona: Persona,
    pub(crate) expectation: Expectation,
}

/// What became of the attempt.
pub(crate) struct Verdict {
    /// The errno that was seen, in the words of the table.
    pub(crate) errno: String,
    /// What is wrong; nothing if all is well.
    pub(crate) problems: Vec<String>,
    /// Whether dsh-run has said beforehand that it cannot stop the attack here.
    pub(crate) declared_gap: bool,
}

/// The probe's line of JSON.
#[derive(Deserialize)]
struct Answer {
    errno: Option<String>,
    detail: Option<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    call: String,
}

impl Case {
    /// What the table of results says of it.
    pub(crate) fn line(&self, errno: &str, result: &str) -> [String; 6] {
        [
            self.attack.name.clone(),
            self.rung.as_str().to_owned(),
            self.persona.label(),
            errno.to_owned(),
            format!("{:?}", self.expectation.layer),
            result.to_owned(),
        ]
    }

    /// Why this host cannot run the case, if so.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let attack = &self.attack;
        if let Some(only) = attack.only_on.as_ref().filter(|only| *only != std::env::consts::ARCH) {
            return Some(format!("the call exists on {only} only"));
        }
        if !attack.needs().is_empty() && !nix::unistd::geteuid().is_root() {
            return Some("only root can prepare the host for it".to_owned());
        }
        self.persona.obstacle()
    }

    /// Makes the attempt.
    pub(crate) fn run(&self, binaries: &Binaries) -> io::Result<Verdict> {
        let mut host = Host::new(&self.attack, self.persona, binaries)?;
        match self.attack.mounts {
            Mounts::AsTheyAre => self.compare(&mut host, binaries),
            // A mount namespace belongs to a thread: the others of this process keep the host's.
            Mounts::Before | Mounts::Late => std::thread::scope(|scope| {
                let case = scope.spawn(|| {
                    unshare(CloneFlags::CLONE_NEWNS)?;
                    change_mount("/", MsFlags::MS_SHARED | MsFlags::MS_REC)?;
                    self.compare(&mut host, binaries)
                });
                case.join().unwrap_or_else(|_| Err(io::Error::other("the case panicked")))
            }),
        }
    }

    fn compare(&self, host: &mut Host, binaries: &Binaries) -> io::Result<Verdict> {
        if self.attack.mounts == Mounts::Before {
            mount_tmpfs(&host.files.join("mounted"), self.persona)?;
        }
        let before = host.state()?;
        let finished = self.finish(host, binaries)?;
        let gap = self.declared_gap(host)?;
        let (errno, mut problems) = self.judge(host, &finished, gap);
        // Only a success makes use of a gap.
        let declared_gap = gap && errno == NO_ERRNO && self.expected_errno() != NO_ERRNO;
        if !declared_gap {
            problems.extend(host.damage_since(&before, self.rung)?);
        }
        if !problems.is_empty() && !finished.stderr.is_empty() {
            problems.push(format!("stderr: {}", finished.stderr.trim_end()));
        }
        Ok(Verdict { errno, problems, declared_gap })
    }

    fn command(&self, host: &Host, binaries: &Binaries) -> io::Result<Command> {
        let expand = |words: &[String]| -> Vec<String> {
            words.iter().map(|word| host.expand(word)).collect()
        };
        let mut command = Command::new(binaries.dsh_run());
        command.args(["--mode", self.rung.as_str(), "--workspace"]).arg(&host.workspace);
        if self.attack.gap.is_some() {
            command.arg("--facts").arg(host.granted.join(FACTS_FILE));
        }
        command.args(expand(&self.attack.options)).arg("--").arg(binaries.dsh_probe());
        command.args(expand(&self.attack.probe)).current_dir(&host.workspace);
        command.process_group(host.group());
        self.persona.dress(&mut command);
        connect(&mut command, &self.attack, host)?;
        Ok(command)
    }

    fn finish(&self, host: &Host, binaries: &Binaries) -> io::Result<Finished> {
        let mut running = Running::start(&mut self.command(host, binaries)?)?;
        if self.attack.mounts != Mounts::Late {
            return running.finish();
        }
        if !running.wait_for_stderr("ready\n")? {
            return running.finish();
        }
        let late = host.workspace.join("mounted");
        mount_tmpfs(&late, self.persona)?;
        running.stdin().map(|mut stdin| stdin.write_all(b"go\n")).transpose()?;
        let finished = running.finish();
        let marker = fs::read_to_string(late.join("marker"));
        // Taken away again, so that the host is compared as it was before.
        umount2(&late, MntFlags::MNT_DETACH)?;
        if marker? != MARKER {
            return Err(io::Error::other("the late mount was written to"));
        }
        finished
    }

    /// Whether the facts of the run list the effect of the attack as a gap.
    fn declared_gap(&self, host: &Host) -> io::Result<bool> {
        let Some(effect) = &self.attack.gap else {
            return Ok(false);
        };
        let facts = fs::read(host.granted.join(FACTS_FILE))
            .map_err(|error| io::Error::other(format!("no facts of the run: {error}")))?;
        let facts: serde_json::Value = serde_json::from_slice(&facts)?;
        let gaps = facts.pointer("/enforcement/gaps").and_then(serde_json::Value::as_array);
        Ok(gaps.is_some_and(|gaps| gaps.iter().any(|gap| gap["effect"] == **effect)))
    }

    /// What the probe, or dsh-run, said.
    fn judge(&self, host: &Host, finished: &Finished, gap: bool) -> (String, Vec<String>) {
        let stdout = match self.attack.stdout {
            Stream::File => fs::read_to_string(host.granted.join(STDOUT_FILE)).unwrap_or_default(),
            _ => finished.stdout.clone(),
        };
        let expected = self.expected_errno();
        if expected == REFUSED {
            return self.judge_refusal(finished.status, &stdout, &finished.stderr);
        }
        let mut problems = Vec::new();
        if !finished.status.success() {
            problems.push(format!("dsh-run ended with {}", finished.status));
        }
        let Ok(answer) = serde_json::from_str::<Answer>(&stdout) else {
            problems.push(format!("the probe's answer is {stdout:?}"));
            return ("?".to_owned(), problems);
        };
        let errno = answer.errno.unwrap_or_else(|| NO_ERRNO.to_owned());
        let succeeded = errno == NO_ERRNO;
        if errno != expected && !(gap && succeeded) {
            problems.push(format!("expected {expected}, got {errno}"));
        }
        let Expectation { at, detail, .. } = &self.expectation;
        let last = answer.steps.last().map(|step| &step.call);
        if !succeeded && at.is_some() && at.as_ref() != last {
            problems.push(format!("stopped at {last:?} instead of {at:?}"));
        }
        if succeeded && detail.is_some() && answer.detail != *detail {
            problems.push(format!("reported {:?}", answer.detail));
        }
        (errno, problems)
    }

    /// Where dsh-run must refuse: its own status, one line that says so, and no sign of the
    /// command.
    fn judge_refusal(
        &self,
        status: ExitStatus,
        stdout: &str,
        stderr: &str,
    ) -> (String, Vec<String>) {
        let mut problems = Vec::new();
        let can_speak = matches!(self.attack.stderr, Stream::Usual | Stream::Pipe);
        if can_speak && !(stderr.starts_with("dsh-run: ") && stderr.lines().count() == 1) {
            problems.push(format!("expected one line from dsh-run on stderr, got {stderr:?}"));
        }
        if !stdout.is_empty() {
            problems.push(format!("the command ran: {stdout:?}"));
        }
        let ended = status.code().map_or_else(|| status.to_string(), |code| format!("exit {code}"));
        if ended != REFUSED {
            problems.push(format!("expected {REFUSED}, got {ended}"));
        }
        (ended, problems)
    }

    fn expected_errno(&self) -> &str {
        let Attack { host_file, host_call, .. } = &self.attack;
        if host_file.as_ref().is_some_and(|file| !Path::new(file).exists()) {
            "ENOENT"
        } else if host_call.is_some_and(|number| !kernel::has_call(number)) {
            "ENOSYS"
        } else {
            &self.expectation.errno
        }
    }
}

const FACTS_FILE: &str = "facts.json";
const MARKER: &str = "of a mount that the host made\n";

fn mount_tmpfs(target: &Path, persona: Persona) -> io::Result<()> {
    mount(Some("dsh-escape"), target, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    let marker = target.join("marker");
    fs::write(&marker, MARKER)?;
    persona.own(target)?;
    persona.own(&marker)
}

fn change_mount(target: &str, flags: MsFlags) -> io::Result<()> {
    let none = None::<&str>;
    mount(none, target, none, flags, none)?;
    Ok(())
}
