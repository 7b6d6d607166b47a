//! Who calls `dsh-run`, and from where.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::Pid;
use tempfile::TempDir;

use super::persona::Persona;
use super::running::{Finished, Running};

/// Where programs are found.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// A persona with a directory below /var/tmp (the sandbox has a /tmp of its own) that holds a
/// workspace and a home, removed when dropped.
pub(crate) struct Caller {
    persona: Persona,
    dsh_run: PathBuf,
    base: TempDir,
}

impl Caller {
    /// Makes the directories, owned by the persona who is going to run the program.
    pub(crate) fn new(persona: Persona, dsh_run: PathBuf) -> io::Result<Self> {
        let base = tempfile::Builder::new().prefix("dsh-caller-").tempdir_in("/var/tmp")?;
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755))?;
        persona.own(base.path())?;
        let caller = Self { persona, dsh_run, base };
        caller.make_dir("workspace")?;
        caller.make_dir("home")?;
        Ok(caller)
    }

    /// Who runs the program.
    pub(crate) fn persona(&self) -> Persona {
        self.persona
    }

    /// A path in the caller's directory, beside the workspace.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.base.path().join(name)
    }

    /// The workspace, where programs start.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// The program under test.
    pub(crate) fn program(&self) -> &Path {
        &self.dsh_run
    }

    /// Makes a directory of the persona's.
    pub(crate) fn make_dir(&self, name: impl AsRef<Path>) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir(&path)?;
        self.persona.own(&path)?;
        Ok(path)
    }

    /// Makes a file of the persona's.
    pub(crate) fn make_file(&self, name: impl AsRef<Path>, content: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content)?;
        self.persona.own(&path)?;
        Ok(path)
    }

    /// `dsh-run`, run by the persona in the workspace, with an environment that is the same
    /// everywhere and nothing on standard input.
    pub(crate) fn dsh_run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.command(&self.dsh_run);
        command.args(arguments);
        command
    }

    /// The same, and [`Caller::pid`] tells its pid once it runs.
    pub(crate) fn known_dsh_run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", "echo $$ >../pid; exec \"$0\" \"$@\""]).arg(&self.dsh_run);
        command.args(arguments);
        command
    }

    /// The pid of the last [`Caller::known_dsh_run`].
    pub(crate) fn pid(&self) -> io::Result<Pid> {
        let text = fs::read_to_string(self.path("pid"))?;
        text.trim().parse().map(Pid::from_raw).map_err(io::Error::other)
    }

    /// Another program, run in the same way; for what has to happen around `dsh-run`.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        self.place(&mut command);
        self.persona.dress(&mut command);
        command
    }

    /// Puts a command in the workspace, with the environment and the input that all of them have;
    /// for one that becomes the persona by itself.
    pub(crate) fn place(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C")
            .current_dir(self.workspace())
            .stdin(Stdio::null());
    }

    /// A shell with a mount namespace of its own, in which its script may mount. `$DSH_RUN` is the
    /// program under test.
    pub(crate) fn mounting_shell(&self, script: &str) -> Command {
        let mut command = self.command("unshare");
        if !self.persona.is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--mount", "sh", "-euc", script]).env("DSH_RUN", &self.dsh_run);
        command
    }
}

/// Runs a command to its end, with its output collected.
pub(crate) fn finish(command: &mut Command) -> io::Result<Finished> {
    Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.finish()
}
