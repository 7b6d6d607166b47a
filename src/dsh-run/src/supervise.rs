//! From a confined command to its end: signals, the time limit, the terminal.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use dsh_facts::Exit;
use dsh_sandbox::{Event, Run, SandboxError};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::arguments::RunOptions;
use crate::error::{Error, system};
use crate::facts_output::FactsOutput;
use crate::terminal::{Terminal, raised_by_changes};

/// The signals that go on to the command's group.
const FORWARDED: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals as descriptors, from before the command starts so that none is missed.
pub(crate) fn watch_signals() -> Result<SignalFd, Error> {
    let forwarded: SigSet = FORWARDED.into_iter().collect();
    let mut blocked = raised_by_changes();
    blocked.extend(&forwarded);
    // A file that becomes too large for the caller's limit is an error to tell (EFBIG).
    blocked.add(Signal::SIGXFSZ);
    blocked.thread_block().map_err(system("block signals"))?;
    SignalFd::with_flags(&forwarded, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(system("signalfd"))
}

/// How a command ended, and what exec said when it did not start.
pub(crate) struct End {
    pub(crate) exit: Exit,
    pub(crate) not_executed: Option<Errno>,
}

/// When the command is to be ended by force.
struct Deadlines {
    /// Ask it to end.
    ask: Option<Instant>,
    /// End it.
    kill: Option<Instant>,
    kill_after: Duration,
    timed_out: bool,
    aborted: bool,
}

/// Sees the command through to its end.
pub(crate) fn supervise(
    run: &mut Run,
    options: &RunOptions,
    signals: &SignalFd,
    mut terminal: Option<&mut Terminal>,
    facts: &mut FactsOutput,
) -> Result<End, Error> {
    let mut deadlines = Deadlines {
        ask: options.timeout.map(|timeout| Instant::now() + timeout),
        kill: None,
        kill_after: options.kill_after,
        timed_out: false,
        aborted: false,
    };
    if let Some(terminal) = terminal.as_deref_mut() {
        terminal.set_command(run.process_group());
    }
    loop {
        let mut ready = [
            PollFd::new(run.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, deadlines.timeout()) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(system("poll")(errno)),
        }
        let [news, signalled] = ready.map(|one| one.any().unwrap_or(false));
        if signalled {
            while let Ok(Some(info)) = signals.read_signal() {
                forward(run, info.ssi_signo, &mut deadlines)?;
            }
        }
        if news && let Some(event) = run.next(Some(Duration::ZERO))? {
            if let (Event::Denied(_), Some(denial)) = (&event, run.denials().listed.last()) {
                facts.denied(denial);
            }
            if let Event::Stopped(signal) = event {
                // Without a terminal nobody would continue us, and a time limit must go on.
                if let Some(terminal) = terminal.as_deref() {
                    terminal.stopped(signal);
                    run.signal(Signal::SIGCONT)?;
                }
            } else if let Some(end) = deadlines.end(&event)? {
                return Ok(end);
            }
        }
        deadlines.enforce(run)?;
    }
}

fn forward(run: &mut Run, signal: u32, deadlines: &mut Deadlines) -> Result<(), Error> {
    let signal = i32::try_from(signal).ok().and_then(|signal| Signal::try_from(signal).ok());
    let Some(signal) = signal else { return Ok(()) };
    run.signal(signal)?;
    // A stopped group would sleep through it.
    run.signal(Signal::SIGCONT)?;
    deadlines.aborted |= !deadlines.timed_out;
    deadlines.start_kill();
    Ok(())
}

impl Deadlines {
    fn timeout(&self) -> PollTimeout {
        let next = [self.ask, self.kill].into_iter().flatten().min();
        next.map_or(PollTimeout::NONE, |next| {
            let left = next.saturating_duration_since(Instant::now());
            PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        })
    }

    fn start_kill(&mut self) {
        self.kill.get_or_insert(Instant::now() + self.kill_after);
    }

    fn enforce(&mut self, run: &mut Run) -> Result<(), Error> {
        let now = Instant::now();
        if self.ask.is_some_and(|at| at <= now) {
            self.ask = None;
            self.timed_out = !self.aborted;
            run.signal(Signal::SIGTERM)?;
            run.signal(Signal::SIGCONT)?;
            self.start_kill();
        }
        if self.kill.is_some_and(|at| at <= now) {
            self.kill = None;
            run.kill()?;
        }
        Ok(())
    }

    /// What an event says of the end, if it is one.
    fn end(&self, event: &Event) -> Result<Option<End>, Error> {
        let mut exit = Exit {
            started: true,
            code: None,
            signal: None,
            timed_out: self.timed_out,
            aborted: self.aborted,
        };
        let mut not_executed = None;
        match *event {
            Event::Exited(code) => exit.code = Some(code),
            Event::Killed(signal) => exit.signal = Some(signal),
            Event::NotExecuted(errno) => {
                let errno = Errno::from_raw(errno);
                exit.started = false;
                exit.code = Some(if errno == Errno::ENOENT { 127 } else { 126 });
                not_executed = Some(errno);
            }
            Event::Lost => return Err(SandboxError::RunnerFailed.into()),
            Event::Unobserved(ref error) => {
                return Err(SandboxError::ObserverFailed(error.clone()).into());
            }
            _ => return Ok(None),
        }
        Ok(Some(End { exit, not_executed }))
    }
}
