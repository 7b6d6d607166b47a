//! What is compared: each a name and the command line of a whole run of `true`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::args::{Args, beside, filter_length};

pub(crate) const BARE: &str = "true";
pub(crate) const FLOOR: &str = "floor";
pub(crate) const BWRAP: &str = "bwrap";
pub(crate) const READ_ONLY: &str = "dsh-run read-only";
pub(crate) const WORKSPACE_WRITE: &str = "dsh-run workspace-write";

/// What every one of them runs in the end: nothing, so that only the way there is measured.
const TRUE: &str = "/bin/true";

pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: PathBuf,
    arguments: Vec<OsString>,
    workspace: PathBuf,
}

impl Program {
    fn new<I>(name: &'static str, path: PathBuf, arguments: I, workspace: &Path) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { name, path, arguments, workspace: workspace.to_owned() }
    }

    /// Puts `options` before everything else on the command line.
    pub(crate) fn with(mut self, options: [OsString; 2]) -> Self {
        self.arguments.splice(..0, options);
        self
    }

    /// A run that leaves no output. Without a `pre_exec`, std starts it by posix_spawn.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs it once with its complaints kept, since the timed runs throw them away.
    pub(crate) fn check(&self) -> Result<()> {
        let outcome = self
            .command()
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        if outcome.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&outcome.stderr);
        Err(format!("{}: {}: {}", self.name, outcome.status, complaint.trim()).into())
    }
}

/// All that start-up is compared over; bubblewrap only where there is one.
pub(crate) fn start_up(args: &Args, workspace: &Path) -> Result<Vec<Program>> {
    let none: [&str; 0] = [];
    let mut programs = vec![
        Program::new(BARE, TRUE.into(), none, workspace),
        floor(args, workspace)?,
        read_only(args, workspace)?,
        workspace_write(args, workspace)?,
    ];
    programs.extend(bwrap(workspace));
    Ok(programs)
}

fn floor(args: &Args, workspace: &Path) -> Result<Program> {
    let length = match args.floor_filter {
        Some(length) => length,
        None => filter_length(&args.dsh_run()?)?,
    };
    Ok(Program::new(FLOOR, beside("floor")?, ["--", TRUE], workspace)
        .with(["--filter-length".into(), length.to_string().into()]))
}

fn read_only(args: &Args, workspace: &Path) -> Result<Program> {
    let arguments = ["--mode", "read-only", "--", TRUE];
    Ok(Program::new(READ_ONLY, args.dsh_run()?, arguments, workspace))
}

pub(crate) fn workspace_write(args: &Args, workspace: &Path) -> Result<Program> {
    let arguments = ["--mode", "workspace-write", "--", TRUE];
    Ok(Program::new(WORKSPACE_WRITE, args.dsh_run()?, arguments, workspace)
        .with(["--workspace".into(), workspace.into()]))
}

fn bwrap(workspace: &Path) -> Option<Program> {
    let path = env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(BWRAP))
        .find(|path| path.is_file())?;
    let arguments = [
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        TRUE,
    ];
    Some(Program::new(BWRAP, path, arguments, workspace))
}
