//! A simulated host, and dsh-run on it. See tests/hostsim.c.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use dsh_facts::Facts;
use nix::unistd::geteuid;

use super::binaries::Binaries;
use super::caller::finish;
use super::fixture::Fixture;
use super::running::Finished;

/// What all tests of a suite share.
pub(crate) struct Programs {
    binaries: Binaries,
    hostsim: Option<PathBuf>,
}

impl Programs {
    /// Copies `dsh_run` to where every user can execute it, and compiles hostsim beside it, for which
    /// only root has a use: a test may put something over /tmp, where the target directory can be.
    pub(crate) fn prepare(dsh_run: &Path) -> io::Result<Self> {
        let binaries = Binaries::copy(dsh_run)?;
        let hostsim = geteuid().is_root().then(|| compile(binaries.dir())).transpose()?;
        Ok(Self { binaries, hostsim })
    }

    /// The command line under test.
    pub(crate) fn dsh_run(&self) -> PathBuf {
        self.binaries.dsh_run()
    }

    /// The program that makes forbidden attempts.
    pub(crate) fn dsh_probe(&self) -> PathBuf {
        self.binaries.dsh_probe()
    }
}

fn compile(directory: &Path) -> io::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostsim.c");
    let program = directory.join("hostsim");
    let compiled =
        Command::new("cc").args(["-O1", "-Wall", "-o"]).arg(&program).arg(&source).status()?;
    if !compiled.success() {
        return Err(io::Error::other(format!("cc {}: {compiled}", source.display())));
    }
    Ok(program)
}

/// A simulated host.
#[derive(Clone)]
pub(crate) struct Stage {
    /// Options of hostsim.
    pub(crate) options: Vec<String>,
    /// Who runs the command there: hostsim's `-u`, unless it is root.
    pub(crate) uid: u32,
}

/// Pid 1 of the stage: runs the command, and then says what is left of it. What has ended and is
/// only to be waited for is nobody any more.
const WATCH: &str = r#"
state() {
    cat /proc/self/mountinfo
    for setting in kernel/core_pattern kernel/hostname kernel/pid_max \
        net/ipv4/ip_unprivileged_port_start user/max_user_namespaces; do
        cat /proc/sys/$setting
    done
}
left=$1
shift
before=$(state)
"$@"
status=$?
for stat in /proc/[0-9]*/stat; do
    # One that ends meanwhile is no news.
    { read -r pid name state rest <"$stat"; } 2>/dev/null || continue
    [ "$pid" = $$ ] || [ "$state" = Z ] || echo "$pid $name $state"
done >"$left"
[ "$before" = "$(state)" ] || echo "mounts or settings of the host have changed" >>"$left"
exit $status
"#;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit status, as a shell has it.
    pub(crate) status: i32,
    /// What came out.
    pub(crate) stdout: String,
    /// What dsh-run, or the command, complained of.
    pub(crate) stderr: String,
    /// The facts; none where dsh-run left none.
    pub(crate) facts: Option<Facts>,
    /// Processes that outlived dsh-run, and other changes to the stage.
    pub(crate) left: String,
}

impl Stage {
    /// A host with these options of hostsim.
    pub(crate) fn new(options: &[&str], uid: u32) -> Self {
        Self { options: options.iter().map(|&option| option.to_owned()).collect(), uid }
    }

    /// Why no host can be simulated here, if so.
    pub(crate) fn obstacle() -> Option<&'static str> {
        (!geteuid().is_root()).then_some("only root can imitate a host")
    }

    /// hostsim with a program as its pid 1.
    pub(crate) fn command(&self, programs: &Programs) -> io::Result<Command> {
        let hostsim = programs.hostsim.as_ref();
        let mut command = Command::new(hostsim.ok_or_else(|| io::Error::other("no hostsim"))?);
        command.args(&self.options);
        if self.uid != 0 {
            command.args(["-u", &self.uid.to_string()]);
        }
        command.arg("--");
        // The loader looks into the target directory, a shell at the directory that it is told it is
        // in: they would wait where those lie in a place that a test has made silent.
        command.env_remove("LD_LIBRARY_PATH").env_remove("PWD").env_remove("OLDPWD");
        Ok(command)
    }

    /// Runs a program in the workspace, under the eyes of the stage's pid 1.
    pub(crate) fn watch<T: Into<OsString>>(
        &self,
        programs: &Programs,
        fixture: &Fixture,
        words: impl IntoIterator<Item = T>,
    ) -> io::Result<Ran> {
        let left = fixture.report().join("left");
        let mut command = self.command(programs)?;
        command.args(["sh", "-c", WATCH, "watch"]).arg(&left);
        command.args(words.into_iter().map(Into::into));
        command.current_dir(fixture.workspace()).stdin(Stdio::null());
        let finished = finish(&mut command)?;
        let left = fs::read_to_string(left).unwrap_or_else(|error| format!("unknown: {error}"));
        Ran::new(finished, fixture, left)
    }

    /// Runs dsh-run with these arguments beside the workspace and the facts file.
    pub(crate) fn run(
        &self,
        programs: &Programs,
        fixture: &Fixture,
        arguments: &[&str],
    ) -> io::Result<Ran> {
        self.watch(programs, fixture, dsh_run(programs, fixture, arguments))
    }
}

/// The words of a call of dsh-run.
pub(crate) fn dsh_run(programs: &Programs, fixture: &Fixture, arguments: &[&str]) -> Vec<OsString> {
    let own = [
        programs.dsh_run().into(),
        "--workspace".into(),
        fixture.workspace().into(),
        "--facts".into(),
        fixture.facts().into(),
    ];
    own.into_iter().chain(arguments.iter().map(OsString::from)).collect()
}

impl Ran {
    /// What became of a run whose facts go to the fixture's file.
    pub(crate) fn new(finished: Finished, fixture: &Fixture, left: String) -> io::Result<Self> {
        let facts = match fs::read(fixture.facts()) {
            Ok(text) => Some(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let status = shell_status(finished.status);
        Ok(Self { status, stdout: finished.stdout, stderr: finished.stderr, facts, left })
    }

    /// The facts, where there must be some.
    pub(crate) fn facts(&self) -> io::Result<&Facts> {
        self.facts.as_ref().ok_or_else(|| io::Error::other(format!("no facts of {self:#?}")))
    }
}

/// The exit status, or 128 and the signal.
pub(crate) fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
