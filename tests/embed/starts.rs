//! Many runs one after the other: what a run takes of its host program, it gives back.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use dsh_facts::SandboxMode;
use dsh_sandbox::{Event, Run, SandboxError, WardenProgram};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, waitpid};

use crate::support::caller::Caller;
use crate::support::running::Running;
use crate::support::suite::{Outcome, tests};
use crate::world::{DEADLINE, request};

tests![four_hundred_runs];

/// Asks this program to be the host program: the tests beside this one have descriptors too.
const START_MANY: &str = "--start-many";
const RUNS: usize = 400;
/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn four_hundred_runs(caller: &Caller) -> Outcome {
    let mut command = caller.command(caller.program());
    command.arg(START_MANY).arg(caller.workspace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Running::start(&mut command)?.within(PATIENCE).finish()?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    Ok(())
}

/// The workspace, if this process is to start many runs.
pub(crate) fn workspace_of_many() -> Option<OsString> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == START_MANY).then(|| arguments.next())?
}

/// Starts them in every mode, by both kinds of wardens; every seventh is refused when its layers are
/// there already.
pub(crate) fn start_many(workspace: &Path) -> ExitCode {
    for number in 0..RUNS {
        let before = possessions();
        let outcome = start(workspace, number);
        let after = possessions();
        if outcome.is_err() || after != before {
            eprintln!("run {number}: {outcome:?}, {before:?} became {after:?}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Open descriptors, threads, and whether there is a child.
fn possessions() -> Option<(usize, usize, bool)> {
    let count = |directory| fs::read_dir(directory).ok().map(Iterator::count);
    let child = waitpid(None, Some(WaitPidFlag::WNOHANG)) != Err(Errno::ECHILD);
    Some((count("/proc/self/fd")?, count("/proc/self/task")?, child))
}

fn start(workspace: &Path, number: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mode = SandboxMode::ALL[number % SandboxMode::ALL.len()];
    let programs = [WardenProgram::Fork, WardenProgram::current()];
    let program = &programs[number % programs.len()];
    let mut request = request(workspace, mode, "exit 7");
    let refused = number % 7 == 6;
    if refused {
        request.workdir = Some("/nonexistent".into());
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let mut run = match Run::start(&request, program, [null.as_fd(); 3], None) {
        Ok(run) if !refused => run,
        Err(SandboxError::Request(_)) if refused => return Ok(()),
        other => return Err(format!("{other:?}").into()),
    };
    match run.next(Some(DEADLINE))? {
        Some(Event::Exited(7)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
