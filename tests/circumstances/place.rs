//! A workspace, and what becomes of writing in it, beside it and elsewhere.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::CONFINED;
use crate::support::caller::{Caller, finish};
use crate::support::problems::Problems;
use crate::support::snapshot::Snapshot;

/// What becomes of a new file in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is on the host.
    Kept,
    /// It is in the sandbox's own scratch, and gone with it.
    Scratch,
    /// It is refused.
    Refused(&'static str),
}

/// What everything outside the writable roots answers.
pub(crate) const READ_ONLY: Fate = Fate::Refused("Read-only file system");
/// What the host's permissions answer, also without a sandbox.
pub(crate) const DENIED: Fate = Fate::Refused("Permission denied");
/// What is not there.
pub(crate) const MISSING: Fate = Fate::Refused("No such file or directory");

/// A workspace with what is expected of it.
pub(crate) struct Place {
    workspace: PathBuf,
    /// Where dsh-run is called.
    start: PathBuf,
    options: Vec<OsString>,
    attempts: Vec<Attempt>,
    watched: bool,
    temporary: Vec<TempDir>,
}

/// A new file in a directory, by its name from the workspace, in the two confined rungs.
struct Attempt {
    directory: OsString,
    read_only: Fate,
    workspace_write: Fate,
}

impl Place {
    /// A workspace in which dsh-run is called, and which workspace-write makes writable.
    pub(crate) fn at(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Self {
            start: workspace.clone(),
            workspace,
            options: Vec::new(),
            attempts: Vec::new(),
            watched: true,
            temporary: Vec::new(),
        }
        .and(".", READ_ONLY, Fate::Kept)
    }

    /// What becomes of a new file in a directory, instead of what was said of it before.
    pub(crate) fn and(
        mut self,
        directory: impl Into<OsString>,
        read_only: Fate,
        workspace_write: Fate,
    ) -> Self {
        let directory = directory.into();
        self.attempts.retain(|attempt| attempt.directory != directory);
        self.attempts.push(Attempt { directory, read_only, workspace_write });
        self
    }

    /// dsh-run is called elsewhere, with options that name the workspace.
    pub(crate) fn called_from<T: Into<OsString>>(
        mut self,
        start: impl Into<PathBuf>,
        options: impl IntoIterator<Item = T>,
    ) -> Self {
        self.start = start.into();
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps a directory until the end.
    pub(crate) fn keep(mut self, directory: TempDir) -> Self {
        self.temporary.push(directory);
        self
    }

    /// A workspace that cannot be looked through.
    pub(crate) fn unwatched(mut self) -> Self {
        self.watched = false;
        self
    }

    /// Runs the attempts in both confined rungs and looks at the host.
    pub(crate) fn check(&self, caller: &Caller, problems: &mut Problems) -> io::Result<()> {
        let outside = caller.make_dir("outside")?;
        caller.make_file("outside/file", "the host's\n")?;
        for mode in CONFINED {
            self.check_in(caller, &outside, mode, problems)?;
        }
        // Or it could not be removed. Where that is refused there is nothing to remove.
        let _ = fs::set_permissions(&self.workspace, Permissions::from_mode(0o755));
        Ok(())
    }

    fn check_in(
        &self,
        caller: &Caller,
        outside: &Path,
        mode: &str,
        problems: &mut Problems,
    ) -> io::Result<()> {
        let expected: Vec<(&OsStr, Fate)> = self
            .attempts
            .iter()
            .map(|one| match mode {
                "read-only" => (one.directory.as_os_str(), one.read_only),
                _ => (one.directory.as_os_str(), one.workspace_write),
            })
            .collect();
        let writes = expected.iter().any(|(_, fate)| *fate == Fate::Kept);
        let watch_all = self.watched && !writes;
        let look = || -> io::Result<_> {
            let workspace = watch_all.then(|| Snapshot::of(&self.workspace)).transpose()?;
            Ok((Snapshot::of(outside)?, workspace, self.beside()?))
        };
        let before = look()?;
        let mut command = caller.dsh_run(["--mode", mode]);
        command.args(&self.options).args(["--", "bash", "-c", SCRIPT, "attempt"]).arg(outside);
        command.args(expected.iter().map(|(directory, _)| directory)).current_dir(&self.start);
        let ended = finish(&mut command)?;
        let after = look()?;

        problems.equal(&format!("{mode}: status"), ended.status.code(), Some(7));
        problems.equal(&format!("{mode}: stderr"), ended.stderr.as_str(), "");
        let answers: Vec<&str> = ended.stdout.lines().collect();
        let wanted: Vec<&str> =
            expected.iter().map(|(_, fate)| fate.answer()).chain(OUTSIDE).collect();
        problems.equal(&format!("{mode}: answers"), answers, wanted);
        for (directory, fate) in expected {
            let there = self.workspace.join(directory).join("new").exists();
            let what = format!("{mode}: the new file in {} is on the host", directory.display());
            problems.equal(&what, there, fate == Fate::Kept);
        }
        problems.equal(&format!("{mode}: outside"), after.0.changes_since(&before.0), vec![]);
        if let (Some(before), Some(after)) = (before.1, after.1) {
            problems.equal(&format!("{mode}: workspace"), after.changes_since(&before), vec![]);
        }
        problems.equal(&format!("{mode}: names beside the workspace"), after.2, before.2);
        Ok(())
    }

    /// What lies beside the workspace. In /tmp others come and go.
    fn beside(&self) -> io::Result<BTreeSet<OsString>> {
        match self.workspace.parent() {
            Some(parent) if parent != Path::new("/tmp") && parent != Path::new("/dev/shm") => {
                fs::read_dir(parent)?.map(|entry| Ok(entry?.file_name())).collect()
            }
            _ => Ok(BTreeSet::new()),
        }
    }
}

impl Fate {
    /// In the words of the script.
    fn answer(self) -> &'static str {
        match self {
            Self::Kept | Self::Scratch => "done",
            Self::Refused(errno) => errno,
        }
    }
}

/// Tries each directory, and then what lies outside. 7 says that it came to its end.
const SCRIPT: &str = r#"
try() { if err=$(eval "$1" 2>&1); then echo "done"; else echo "${err##*: }"; fi; }
outside=$1
shift
for directory; do try ': >"$directory/new"'; done
try ': >"$outside/new"'
try 'echo more >>"$outside/file"'
try 'chmod 600 "$outside/file"'
try 'mkdir "$outside/directory"'
exit 7
"#;

const OUTSIDE: [&str; 4] = ["Read-only file system"; 4];
