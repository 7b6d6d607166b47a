//! A child process whose output is collected, and which cannot outlast its deadline.

use std::io::{self, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// Long enough for a loaded machine, short enough for a suite that hangs.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// A running command. Its output streams are collected where the caller made them pipes.
pub(crate) struct Running {
    child: Child,
    deadline: Instant,
    stdout: Option<Collector>,
    stderr: Option<Collector>,
}

/// A command that has ended.
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// What it printed; empty where stdout was no pipe.
    pub(crate) stdout: String,
    /// What it printed; empty where stderr was no pipe.
    pub(crate) stderr: String,
}

impl Running {
    /// Starts the command.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().map(Collector::start);
        let stderr = child.stderr.take().map(Collector::start);
        Ok(Self { child, deadline: Instant::now() + DEADLINE, stdout, stderr })
    }

    /// Gives it more time than usual: for a command that has much to do.
    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.deadline = Instant::now() + time;
        self
    }

    /// The command's own pid.
    pub(crate) fn pid(&self) -> io::Result<Pid> {
        i32::try_from(self.child.id()).map(Pid::from_raw).map_err(io::Error::other)
    }

    /// The writing end of a stdin that is a pipe.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits until stderr has the text, or the command has ended.
    pub(crate) fn wait_for_stderr(&mut self, text: &str) -> io::Result<bool> {
        loop {
            if self.stderr.as_ref().is_some_and(|collector| collector.text().contains(text)) {
                return Ok(true);
            }
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            self.pause()?;
        }
    }

    /// Waits for the end of the command, and of everything that holds its output streams.
    pub(crate) fn finish(mut self) -> io::Result<Finished> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            self.pause()?;
        };
        while self.collectors().any(|collector| !collector.reader.is_finished()) {
            self.pause()?;
        }
        let text = |collector: &Option<Collector>| {
            collector.as_ref().map(Collector::text).unwrap_or_default()
        };
        Ok(Finished { status, stdout: text(&self.stdout), stderr: text(&self.stderr) })
    }

    fn collectors(&self) -> impl Iterator<Item = &Collector> {
        self.stdout.iter().chain(&self.stderr)
    }

    fn pause(&mut self) -> io::Result<()> {
        if Instant::now() > self.deadline {
            self.child.kill()?;
            self.child.wait()?;
            let output: Vec<String> = self.collectors().map(Collector::text).collect();
            let message = format!("still running or holding its output: {output:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }
}

/// Reads a stream to its end in a thread of its own.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collector {
    fn start(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(got @ 1..) = stream.read(&mut chunk) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..got]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
