//! A host program that dies takes its warden and every command along.

use std::ffi::OsString;
use std::fs::File;
use std::io::PipeReader;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use dsh_facts::SandboxMode;
use dsh_sandbox::{Warden, WardenProgram, probe, resolve};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::caller::Caller;
use crate::support::suite::{Outcome, Stop, tests};
use crate::world::{DEADLINE, read_all, read_until, request};

tests![one_that_dies_alone, one_whose_socket_is_held_by_another];

/// Asks this program to be the host program.
const HARNESS: &str = "--be-harness";

/// The arguments of a harness, if this process is to be one.
pub(crate) fn harness_arguments() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == HARNESS).then(|| arguments.collect())
}

/// Runs a command without an end, whose output is standard output, and waits to be killed.
pub(crate) fn be_harness(arguments: &[OsString]) -> ExitCode {
    let [mode, workspace] = arguments else { return ExitCode::FAILURE };
    let Some(mode) = mode.to_str().and_then(|mode| mode.parse().ok()) else {
        return ExitCode::FAILURE;
    };
    match start(mode, Path::new(workspace)) {
        Ok(_warden) => loop {
            std::thread::park();
        },
        Err(error) => {
            eprintln!("harness: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(mode: SandboxMode, workspace: &Path) -> Result<Warden, Box<dyn std::error::Error>> {
    let program = WardenProgram::current();
    let host = probe(&program)?;
    let script = "(setsid sleep 300 &); echo ready; trap '' TERM HUP INT; sleep 300";
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let output = std::io::stdout();
    let descriptors = [null.as_fd(), output.as_fd(), null.as_fd()];
    let plan = resolve(&request(workspace, mode, script), &host, Some(descriptors))?;
    let mut warden = Warden::start(&program, &plan.world)?;
    // As a child that the host program forked would hold it.
    let held = warden.as_fd().try_clone_to_owned()?;
    let holder = Command::new("sleep")
        .arg("300")
        .stdin(held)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::fs::write(workspace.join("../holder"), holder.id().to_string())?;
    warden.run(&plan.command, descriptors, None)?;
    Ok(warden)
}

fn one_that_dies_alone(caller: &Caller) -> Outcome {
    assert_all_ends(caller, |holder| {
        kill(holder, Signal::SIGKILL)?;
        Ok(())
    })
}

fn one_whose_socket_is_held_by_another(caller: &Caller) -> Outcome {
    assert_all_ends(caller, |holder| {
        let link = std::fs::read_link(format!("/proc/{holder}/fd/0"))?;
        assert!(link.to_string_lossy().starts_with("socket:"), "{}", link.display());
        Ok(())
    })
}

/// Kills a harness and checks that nothing of it is left; `before` gets the process that holds its
/// control socket.
fn assert_all_ends(caller: &Caller, before: fn(Pid) -> Outcome) -> Outcome {
    for mode in SandboxMode::ALL {
        let (mut output, writer) = std::io::pipe()?;
        let mut harness = caller
            .command(caller.program())
            .args([HARNESS, mode.as_str()])
            .arg(caller.workspace())
            .stdout(OwnedFd::from(writer))
            .spawn()?;
        let outcome = kill_and_look(caller, mode, &mut output, &mut harness, before);
        let _ = harness.kill();
        let _ = harness.wait();
        outcome?;
        assert_eq!(read_all(output)?, "", "{mode}");
    }
    Ok(())
}

fn kill_and_look(
    caller: &Caller,
    mode: SandboxMode,
    output: &mut PipeReader,
    harness: &mut Child,
    before: fn(Pid) -> Outcome,
) -> Outcome {
    read_until(output, "ready")?;
    let warden = child_named(harness.id(), "dsh-warden")?.ok_or("no warden")?;
    let holder = Pid::from_raw(std::fs::read_to_string(caller.path("holder"))?.parse()?);
    before(holder)?;
    harness.kill()?;
    harness.wait()?;
    let gone = wait_until_gone(warden);
    // In the one case it has ended before.
    let _ = kill(holder, Signal::SIGKILL);
    assert!(gone, "{mode}: the warden outlives its parent");
    Ok(())
}

/// The child of a process with this name.
fn child_named(parent: u32, name: &str) -> Result<Option<i32>, Stop> {
    for entry in std::fs::read_dir("/proc")? {
        let file = entry?.file_name();
        let Some(pid) = file.to_str().and_then(|file| file.parse::<i32>().ok()) else { continue };
        // One that has just ended has nothing to read any more.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((front, rest)) = stat.rsplit_once(')') else { continue };
        let is_child = rest.split_whitespace().nth(1) == Some(&parent.to_string());
        if is_child && front.ends_with(&format!("({name}")) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

fn wait_until_gone(pid: i32) -> bool {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // What is only to be waited for is dead.
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
        if matches!(state, None | Some("Z" | "X")) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
