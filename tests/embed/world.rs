//! A world, and what is run in it.

use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dsh_facts::SandboxMode;
use dsh_sandbox::{
    EnvironmentRequest, Event, Host, Plan, Request, Warden, WardenProgram, probe, resolve,
};

use crate::support::caller::Caller;
use crate::support::suite::Stop;

/// Long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A warden with the world that it made.
pub(crate) struct World {
    /// It.
    pub(crate) warden: Warden,
    host: Host,
    mode: SandboxMode,
}

/// A command that was started.
pub(crate) struct Started {
    /// Its number.
    pub(crate) id: u32,
    /// Its standard output.
    pub(crate) output: PipeReader,
}

impl World {
    /// Makes a world for commands of a mode.
    pub(crate) fn make(caller: &Caller, mode: SandboxMode) -> Result<Self, Stop> {
        let host = probe(&WardenProgram::current())?;
        let plan = plan(&request(&caller.workspace(), mode, "true"), &host)?;
        let warden = Warden::start(&WardenProgram::current(), &plan.world)?;
        Ok(Self { warden, host, mode })
    }

    /// Starts a script in the workspace, with these descriptors as standard input and error.
    pub(crate) fn start_with(
        &mut self,
        caller: &Caller,
        script: &str,
        input: OwnedFd,
        error: OwnedFd,
    ) -> Result<Started, Stop> {
        let (reader, writer) = std::io::pipe()?;
        let request = request(&caller.workspace(), self.mode, script);
        let descriptors = [input.as_fd(), writer.as_fd(), error.as_fd()];
        let plan = resolve(&request, &self.host, Some(descriptors))?;
        let id = self.warden.run(&plan.command, descriptors, None)?;
        Ok(Started { id, output: reader })
    }

    /// Starts a script with nothing to read.
    pub(crate) fn start(&mut self, caller: &Caller, script: &str) -> Result<Started, Stop> {
        let null = || File::options().read(true).write(true).open("/dev/null");
        self.start_with(caller, script, null()?.into(), null()?.into())
    }

    /// Waits for the next command to end.
    pub(crate) fn next_end(&mut self) -> Result<(u32, Event), Stop> {
        let start = Instant::now();
        while let Some(left) = DEADLINE.checked_sub(start.elapsed()) {
            match self.warden.next(Some(left))? {
                Some((_, Event::Prepared(_) | Event::Confined { .. })) => {}
                Some(end) => return Ok(end),
                None => break,
            }
        }
        Err("no command ends".into())
    }
}

/// A request to run a script in a workspace.
pub(crate) fn request(workspace: &Path, mode: SandboxMode, script: &str) -> Request {
    Request {
        mode: Some(mode),
        workspace: Some(workspace.to_owned()),
        workdir: Some(workspace.to_owned()),
        environment: EnvironmentRequest {
            inherited: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..EnvironmentRequest::default()
        },
        command: vec!["bash".into(), "-c".into(), script.into()],
        ..Request::default()
    }
}

/// The plan of a request, to look at.
pub(crate) fn plan(request: &Request, host: &Host) -> Result<Plan, Stop> {
    Ok(resolve(request, host, None)?)
}

/// Reads until the text has appeared.
pub(crate) fn read_until(output: &mut PipeReader, text: &str) -> Result<String, Stop> {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut chunk = [0; 256];
        let got = read_in_time(output, &mut chunk)?;
        if got == 0 {
            return Err(format!("it ended after {}", String::from_utf8_lossy(&seen)).into());
        }
        seen.extend(&chunk[..got]);
    }
    Ok(String::from_utf8_lossy(&seen).into_owned())
}

/// Reads to the end: until nobody holds the other end of the pipe any more.
pub(crate) fn read_all(mut output: PipeReader) -> Result<String, Stop> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        // Nobody listens any more when the deadline has passed.
        let _ = sender.send(output.read_to_string(&mut text).map(|_| text));
    });
    match receiver.recv_timeout(DEADLINE) {
        Ok(text) => Ok(text?),
        Err(_) => Err("something still holds the output".into()),
    }
}

fn read_in_time(output: &mut PipeReader, chunk: &mut [u8]) -> Result<usize, Stop> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let timeout = PollTimeout::try_from(DEADLINE)?;
    if poll(&mut [PollFd::new(output.as_fd(), PollFlags::POLLIN)], timeout)? == 0 {
        return Err("nothing to read".into());
    }
    Ok(output.read(chunk)?)
}
