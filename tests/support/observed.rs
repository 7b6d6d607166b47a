//! Runs, and what was denied in them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dsh_facts::{Denial, DenialSource, Facts, Layer, State};

use super::answer::Answer;
use super::caller::{Caller, finish};
use super::problems::Problems;
use super::running::{Finished, Running};
use super::stage::{Programs, Ran, shell_status};

/// The confined rungs.
pub(crate) const CONFINED: [&str; 2] = ["read-only", "workspace-write"];

/// For a command that has much to do.
pub(crate) const LONG: Duration = Duration::from_secs(1800);

/// A run that has ended, with its facts.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The exit status, as a shell has it.
    pub(crate) status: i32,
    /// What came out.
    pub(crate) stdout: String,
    /// What dsh-run, or the command, complained of.
    pub(crate) stderr: String,
    /// The facts.
    pub(crate) facts: Facts,
    /// The caller's directory: `@` in what follows.
    top: PathBuf,
}

/// Starts dsh-run with its facts beside the workspace.
pub(crate) fn start<S: AsRef<OsStr>>(
    caller: &Caller,
    options: &[&str],
    words: impl IntoIterator<Item = S>,
    stdin: Stdio,
) -> io::Result<Running> {
    let _ = fs::remove_file(facts_file(caller));
    let mut command = caller.dsh_run(["--facts"]);
    command.arg(facts_file(caller)).args(options).arg("--").args(words);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(&mut command)
}

fn facts_file(caller: &Caller) -> PathBuf {
    caller.path("facts.json")
}

/// The probe's path, as the first word of a command.
pub(crate) fn probe(caller: &Caller) -> String {
    caller.program().with_file_name("dsh-probe").display().to_string()
}

/// A copy of it that its user may execute and not read, `@/unreadable`; made by root.
pub(crate) fn unreadable_probe(caller: &Caller) -> io::Result<()> {
    let path = caller.path("unreadable");
    fs::copy(probe(caller), &path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o711))
}

/// A script for sh: `$P` is the probe, `$T` the caller's directory.
pub(crate) fn script(caller: &Caller, text: &str) -> [String; 3] {
    let top = caller.path("").display().to_string();
    let top = top.trim_end_matches('/');
    ["sh".to_owned(), "-c".to_owned(), format!("P={}\nT={top}\n{text}", probe(caller))]
}

/// The words of an attempt of the probe. `@` stands for the caller's directory.
pub(crate) fn attempt(caller: &Caller, text: &str) -> Vec<String> {
    let top = caller.path("").display().to_string();
    let words = text.split_whitespace().map(|word| word.replace("@/", &top));
    [probe(caller)].into_iter().chain(words).collect()
}

/// The probe's path and the caller's directory for a stage's fixture, as in [`script`].
pub(crate) fn staged_script(programs: &Programs, top: &Path, text: &str) -> [String; 3] {
    let (probe, top) = (programs.dsh_probe(), top.display());
    ["sh".to_owned(), "-c".to_owned(), format!("P={}\nT={top}\n{text}", probe.display())]
}

/// What becomes of an attempt without the sandbox.
pub(crate) fn unconfined(caller: &Caller, text: &str) -> io::Result<String> {
    let words = attempt(caller, text);
    let ended = finish(caller.command(&words[0]).args(&words[1..]))?;
    let answers = Answer::all(&ended.stdout)?;
    let answer = answers.last().map(Answer::end);
    answer.ok_or_else(|| io::Error::other(format!("no answer: {}", ended.stderr)))
}

impl Observed {
    /// Runs a command and reads its facts.
    pub(crate) fn run<S: AsRef<OsStr>>(
        caller: &Caller,
        options: &[&str],
        words: impl IntoIterator<Item = S>,
    ) -> io::Result<Self> {
        Self::of(caller, start(caller, options, words, Stdio::null())?)
    }

    /// The same, for a command that takes long.
    pub(crate) fn run_long<S: AsRef<OsStr>>(
        caller: &Caller,
        options: &[&str],
        words: impl IntoIterator<Item = S>,
    ) -> io::Result<Self> {
        Self::of(caller, start(caller, options, words, Stdio::null())?.within(LONG))
    }

    /// Waits for a run that was started with [`start`].
    pub(crate) fn of(caller: &Caller, running: Running) -> io::Result<Self> {
        let Finished { status, stdout, stderr } = running.finish()?;
        let facts = fs::read(facts_file(caller)).map_err(|error| {
            io::Error::new(error.kind(), format!("no facts: {error}: {stdout}{stderr}"))
        })?;
        let facts = serde_json::from_slice(&facts)?;
        let top = caller.path("").canonicalize()?;
        Ok(Self { status: shell_status(status), stdout, stderr, facts, top })
    }

    /// The same, of a run on a stage.
    pub(crate) fn staged(ran: Ran, top: &Path) -> io::Result<Self> {
        let facts = ran.facts()?.clone();
        let Ran { status, stdout, stderr, .. } = ran;
        Ok(Self { status, stdout, stderr, facts, top: top.canonicalize()? })
    }

    /// What was denied, each in one line, such as `open write @/outside/x EROFS mount sh 1`.
    pub(crate) fn denials(&self) -> Vec<String> {
        let top = self.top.display().to_string();
        self.facts.denials.iter().map(|denial| line(denial).replace(&top, "@")).collect()
    }

    /// What was denied must be this, in any order: concurrent programs have none.
    pub(crate) fn check_denials(&self, problems: &mut Problems, what: &str, expected: &[&str]) {
        let mut listed = self.denials();
        let mut expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        listed.sort();
        expected.sort();
        problems.equal(what, listed, expected);
        self.check_shape(problems, what);
    }

    /// What holds of every observed run.
    pub(crate) fn check_shape(&self, problems: &mut Problems, what: &str) {
        let facts = &self.facts;
        problems.equal(what, facts.denial_source, DenialSource::Observed);
        let denied = self.status != 0 && !facts.denials.is_empty();
        problems.equal(&format!("{what}: denied"), facts.denied, Some(denied));
        problems.equal(&format!("{what}: observer"), self.layer(Layer::Observer), ENFORCED);
        for denial in &facts.denials {
            let layer = self.layer(denial.layer);
            problems.equal(&format!("{what}: layer of {denial:?}"), layer, ENFORCED);
            let remedy = denial.remedy.as_deref().is_some_and(|remedy| !remedy.is_empty());
            problems.check(remedy && denial.pid > 1 && denial.count > 0, || {
                format!("{what}: a denial that says too little: {denial:?}")
            });
        }
    }

    /// How far a layer holds.
    pub(crate) fn layer(&self, layer: Layer) -> Option<State> {
        let layers = self.facts.enforcement.iter().flat_map(|enforcement| &enforcement.layers);
        layers.filter(|fact| fact.layer == layer).map(|fact| fact.state).next()
    }

    /// What the probe answered.
    pub(crate) fn answers(&self) -> io::Result<Vec<String>> {
        Ok(Answer::all(&self.stdout)?.iter().map(Answer::end).collect())
    }

    /// What its one answer was.
    pub(crate) fn answer(&self) -> io::Result<String> {
        self.answers()?.pop().ok_or_else(|| io::Error::other(format!("no answer: {self:?}")))
    }
}

const ENFORCED: Option<State> = Some(State::Enforced);

fn line(denial: &Denial) -> String {
    let access = denial.access.map_or("-", dsh_facts::Access::as_str);
    let place = denial.path.as_deref().or(denial.address.as_deref()).unwrap_or("-");
    let Denial { operation, errno, layer, program, count, .. } = denial;
    format!("{operation} {access} {place} {errno} {layer} {program} {count}")
}
