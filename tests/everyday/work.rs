//! Does a row's work inside the sandbox and compares what came of it with what must come of it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_facts::SandboxMode;
use serde::Deserialize;

use crate::support::caller::{Caller, PATH};
use crate::support::persona::Persona;
use crate::support::running::{Finished, Running};
use crate::support::snapshot::Snapshot;
use crate::support::stage::{Programs, Stage, shell_status};
use crate::table::{Expectation, Row};
use crate::toolchain;

/// Against hangs only: a loaded machine may need long.
const DEADLINE: Duration = Duration::from_secs(300);

/// A row on one rung by one user.
pub(crate) struct Work {
    pub(crate) row: Row,
    pub(crate) rung: SandboxMode,
    pub(crate) persona: Persona,
    pub(crate) expectation: Expectation,
}

/// What became of it.
pub(crate) enum End {
    /// What had to.
    Right,
    /// Something else.
    Wrong(Vec<String>),
    /// It cannot be done on this host, and why.
    Impossible(String),
}

/// The probe's line of JSON.
#[derive(Deserialize)]
struct Answer {
    errno: Option<String>,
}

impl Work {
    /// What the table of results says of it.
    pub(crate) fn line(&self, result: &str) -> [String; 5] {
        let (name, rung) = (self.row.name.clone(), self.rung.to_string());
        [name, rung, self.persona.label(), self.expectation.outcome(), result.to_owned()]
    }

    /// Does it.
    pub(crate) fn run(&self, programs: &Programs) -> io::Result<End> {
        if let Some(reason) = self.persona.obstacle() {
            return Ok(End::Impossible(reason));
        }
        if let (Some(reason), Some(_)) = (Stage::obstacle(), &self.row.hostsim) {
            return Ok(End::Impossible(reason.to_owned()));
        }
        if !self.row.rust {
            return Site::new(self, programs, None)?.run();
        }
        let Some(toolchain) = toolchain::find() else {
            return Ok(End::Impossible("rustc is not installed".to_owned()));
        };
        toolchain::reachable(&toolchain, self.persona, |toolchain| {
            Site::new(self, programs, Some(toolchain))?.run()
        })
    }
}

/// The work with all that it needs on the host.
struct Site<'a> {
    work: &'a Work,
    programs: &'a Programs,
    caller: Caller,
    path: String,
}

impl<'a> Site<'a> {
    fn new(work: &'a Work, programs: &'a Programs, toolchain: Option<&Path>) -> io::Result<Self> {
        let caller = Caller::new(work.persona, programs.dsh_run())?;
        let first = toolchain.map(|toolchain| format!("{}/bin:", toolchain.display()));
        Ok(Self { work, programs, caller, path: first.unwrap_or_default() + PATH })
    }

    fn run(&self) -> io::Result<End> {
        let Row { needs, prepare, starts, .. } = &self.work.row;
        for need in needs {
            if !self.outside(need)?.status.success() {
                return Ok(End::Impossible(format!("not installed: {need}")));
            }
        }
        let prepared = self.outside(prepare)?;
        if !prepared.status.success() {
            return Err(io::Error::other(format!("not prepared: {}", said(&prepared))));
        }
        let before = self.host()?;
        let mut problems = Vec::new();
        for _ in 0..*starts {
            let script = self.script();
            problems.extend(self.judge(&self.inside(&["-c", &script])?));
        }
        if let Some(attempt) = &self.work.expectation.attempt {
            problems.extend(self.judge_attempt(attempt)?);
        }
        problems.extend(self.host()?.changes_since(&before));
        if let Some(after) = &self.work.expectation.after {
            let looked = self.outside(after)?;
            if !looked.status.success() {
                problems.push(format!("what is left is wrong: {}", said(&looked)));
            }
        }
        Ok(if problems.is_empty() { End::Right } else { End::Wrong(problems) })
    }

    /// The files of the host that the command must not change.
    fn host(&self) -> io::Result<Snapshot> {
        let top = self.caller.path("");
        let granted = match self.work.rung {
            SandboxMode::ReadOnly => Vec::new(),
            SandboxMode::WorkspaceWrite => self.writable_roots(),
            SandboxMode::DangerFullAccess => vec![top.clone()],
        };
        Snapshot::outside(&top, &granted)
    }

    /// As the options name them: full paths.
    fn writable_roots(&self) -> Vec<PathBuf> {
        let options = &self.work.row.options;
        let named = |name: &'static str| {
            let pairs = options.iter().zip(options.iter().skip(1));
            pairs
                .filter(move |(option, _)| *option == name)
                .map(|(_, root)| self.expand(root).into())
        };
        let workspace = named("--workspace").next_back().unwrap_or_else(|| self.caller.workspace());
        named("--writable").chain([workspace]).collect()
    }

    fn script(&self) -> String {
        let copied = self.work.row.copied && self.work.rung == SandboxMode::ReadOnly;
        let copy = if copied { "cp -a . /tmp/copy && cd /tmp/copy || exit\n" } else { "" };
        format!("{copy}{}", self.expand(&self.work.row.script))
    }

    /// Runs a text for sh as the persona, without the sandbox.
    fn outside(&self, text: &str) -> io::Result<Finished> {
        let mut command = self.caller.command("sh");
        run(command.args(["-euc", &self.expand(text)]).env("PATH", &self.path))
    }

    /// Runs dsh-run with these arguments beside those that the row has.
    fn inside(&self, arguments: &[&str]) -> io::Result<Finished> {
        let Row { hostsim, options, environment, .. } = &self.work.row;
        let mut command = match hostsim {
            None => self.caller.command(self.caller.program()),
            Some(options) => {
                let stage = Stage { options: options.clone(), uid: self.work.persona.id() };
                let mut command = stage.command(self.programs)?;
                self.caller.place(&mut command);
                command.arg(self.caller.program());
                command
            }
        };
        command.args(["--mode", self.work.rung.as_str()]);
        command.args(options.iter().map(|option| self.expand(option))).args(arguments);
        command.env("PATH", &self.path);
        command.envs(environment.iter().map(|(name, value)| (name, self.expand(value))));
        run(&mut command)
    }

    /// Replaces the placeholders of the table.
    fn expand(&self, text: &str) -> String {
        let shown = |path: PathBuf| path.display().to_string();
        let base = shown(self.caller.path(""));
        let base = base.trim_end_matches('/').to_owned();
        let unique = base.rsplit('/').next().unwrap_or_default().to_owned();
        let values = [
            ("base", base),
            ("unique", unique),
            ("workspace", shown(self.caller.workspace())),
            ("home", shown(self.caller.path("home"))),
            ("dsh-run", shown(self.caller.program().to_path_buf())),
            ("uid", self.work.persona.id().to_string()),
        ];
        values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    /// What is wrong with the end of the work.
    fn judge(&self, finished: &Finished) -> Vec<String> {
        let Expectation { status, stdout, says, errno, .. } = &self.work.expectation;
        let mut problems = Vec::new();
        let ended = shell_status(finished.status);
        let right = match (status, errno) {
            (Some(status), _) => ended == *status,
            (None, Some(_)) => !OWN_OR_SUCCESS.contains(&ended),
            (None, None) => ended == 0,
        };
        if !right {
            problems.push(format!("the work ended with {ended}"));
        }
        if stdout.as_ref().is_some_and(|stdout| finished.stdout != self.expand(stdout)) {
            problems
                .push(format!("expected the output {:?}", stdout.as_deref().unwrap_or_default()));
        }
        let part = says.as_ref().map(|part| self.expand(part)).unwrap_or_default();
        if !finished.stdout.contains(&part) && !finished.stderr.contains(&part) {
            problems.push(format!("it did not say {part:?}"));
        }
        if !problems.is_empty() {
            problems.push(said(finished));
        }
        problems
    }

    /// What is wrong with the answer to the call that stops the work.
    fn judge_attempt(&self, attempt: &[String]) -> io::Result<Vec<String>> {
        let probe = self.programs.dsh_probe().display().to_string();
        let attempt: Vec<String> = attempt.iter().map(|word| self.expand(word)).collect();
        let mut words = vec!["--", &probe];
        words.extend(attempt.iter().map(String::as_str));
        let finished = self.inside(&words)?;
        let Ok(answer) = serde_json::from_str::<Answer>(&finished.stdout) else {
            return Ok(vec![format!("no answer of the probe: {}", said(&finished))]);
        };
        if answer.errno == self.work.expectation.errno {
            return Ok(Vec::new());
        }
        Ok(vec![format!("{attempt:?} met {:?}", answer.errno)])
    }
}

/// No exit statuses of work that was stopped: success, timed out, failed, not executable, not found.
const OWN_OR_SUCCESS: [i32; 5] = [0, 124, 125, 126, 127];

fn run(command: &mut Command) -> io::Result<Finished> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)?.within(DEADLINE).finish()
}

fn said(finished: &Finished) -> String {
    format!("{}\nstdout: {}\nstderr: {}", finished.status, finished.stdout, finished.stderr)
}
