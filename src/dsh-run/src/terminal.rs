//! The caller's terminal: the command's group becomes its foreground, and it comes back in the end.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, isatty, tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process.
pub(crate) struct Terminal {
    device: File,
    settings: Option<Termios>,
    command: Option<Pid>,
    /// Whether a command was to take the foreground.
    given: Cell<bool>,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let settings = tcgetattr(&device).ok();
        Some(Self { device, settings, command: None, given: Cell::new(false) })
    }

    /// Whether a command started now should take the foreground: we have it, and both ends of the
    /// command are the terminal. In a pipeline a sibling may need it (`dsh-run -- cmd | less`);
    /// there the command gets it when it asks, see [`Terminal::stopped`].
    pub(crate) fn gives_foreground(&self) -> bool {
        let both = isatty(std::io::stdin()) == Ok(true) && isatty(std::io::stdout()) == Ok(true);
        self.given.set(both && self.is_ours());
        self.given.get()
    }

    /// Whom to give the foreground to.
    pub(crate) fn set_command(&mut self, process_group: i32) {
        self.command = Some(Pid::from_raw(process_group));
    }

    /// Deals with a command that stopped on `signal`. Returns when it is to go on.
    ///
    /// A command that wanted the terminal while we have it gets it. Otherwise we stop too, so that
    /// the shell which started us has its terminal back and sees a stopped job; when it continues
    /// us, the command has the foreground that we have.
    pub(crate) fn stopped(&self, signal: i32) {
        let wants_terminal = signal == Signal::SIGTTIN as i32 || signal == Signal::SIGTTOU as i32;
        if !(wants_terminal && self.is_ours()) {
            self.take_back();
            let _ = raise(Signal::SIGSTOP);
        }
        if let Some(command) = self.command.filter(|_| self.is_ours()) {
            let _ = tcsetpgrp(self.device.as_fd(), command);
            self.given.set(true);
        }
    }

    /// Takes the foreground back from the command. A shell inside gives it to groups of its own,
    /// so whoever has it now has it from us.
    pub(crate) fn take_back(&self) {
        if self.given.replace(false) && !self.is_ours() {
            let _ = tcsetpgrp(self.device.as_fd(), getpgrp());
        }
    }

    /// Puts the settings back, after a command that had no chance to.
    pub(crate) fn restore_settings(&self) {
        if let Some(settings) = &self.settings {
            let _ = tcsetattr(&self.device, SetArg::TCSADRAIN, settings);
        }
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(self.device.as_fd()).ok()
    }

    fn is_ours(&self) -> bool {
        self.foreground() == Some(getpgrp())
    }
}

/// The signals that changing the foreground from the background raises, tcsetpgrp(3): we block
/// them.
pub(crate) fn raised_by_changes() -> SigSet {
    SigSet::from(Signal::SIGTTOU)
}
