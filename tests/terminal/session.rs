//! A pseudo-terminal with an interactive shell on it.
//!
//! A test never sleeps and then looks: it waits until a text appears. What it waits for must not be
//! in what it types, because the terminal echoes that: hence `$((6*7))` in commands.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::libc;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::unistd::{Pid, tcgetpgrp};

use crate::support::caller::Caller;
use crate::support::suite::Stop;

nix::ioctl_write_ptr_bad!(set_window_size, libc::TIOCSWINSZ, libc::winsize);

/// Every rung.
pub(crate) const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

/// The shell's prompt.
pub(crate) const PROMPT: &str = "host$ ";
/// A key.
pub(crate) const CTRL_C: &str = "\x03";
/// A key.
pub(crate) const CTRL_D: &str = "\x04";
/// A key.
pub(crate) const CTRL_Z: &str = "\x1a";
/// A key.
pub(crate) const CTRL_BACKSLASH: &str = "\x1c";

/// Long enough for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// An interactive shell at a terminal. Dropping it hangs up.
pub(crate) struct Session {
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How much of the screen has been waited for.
    seen: usize,
    /// The terminal's name.
    name: String,
    shell: Child,
}

impl Session {
    /// Starts a shell, in which `$D` is the program under test, and waits for its prompt.
    pub(crate) fn start(caller: &Caller) -> Result<Self, Stop> {
        // Closed on exec, or the shells of other tests would hold this terminal open.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname_r(&master)?;
        caller.persona().own(name.as_ref())?;
        let keyboard = File::from(master.as_fd().try_clone_to_owned()?);
        let screen = Arc::default();
        let shell = start_shell(caller, &open(&name)?)?;
        show(File::from(master.as_fd().try_clone_to_owned()?), Arc::clone(&screen));
        let mut session = Self { keyboard, screen, seen: 0, name, shell };
        session.expect(PROMPT)?;
        // A change of a job's state is told at once, not before the next prompt.
        session.line("set -b")?;
        session.expect(PROMPT)?;
        Ok(session)
    }

    /// Types some keys.
    pub(crate) fn keys(&mut self, keys: &str) -> io::Result<()> {
        self.keyboard.write_all(keys.as_bytes())
    }

    /// Types a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.keys(&format!("{text}\n"))
    }

    /// Waits until the text appears behind what was waited for before.
    pub(crate) fn expect(&mut self, text: &str) -> Result<(), Stop> {
        self.expect_within(text, DEADLINE)
    }

    fn expect_within(&mut self, text: &str, limit: Duration) -> Result<(), Stop> {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if let Some(at) = screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return Ok(());
            }
            if start.elapsed() > limit {
                let (before, after) = screen.split_at(self.seen);
                return Err(format!("no {text:?} after\n{before}\n--- but\n{after}").into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Types a line until it has an effect. What is typed right behind a key that raises a signal
    /// can be lost, also where no dsh-run is involved.
    pub(crate) fn insist(&mut self, line: &str, effect: &str) -> Result<(), Stop> {
        const TRY: Duration = Duration::from_secs(2);
        let start = Instant::now();
        loop {
            self.line(line)?;
            let found = self.expect_within(effect, TRY);
            if found.is_ok() || start.elapsed() > DEADLINE {
                return found;
            }
        }
    }

    /// Waits until the condition holds.
    pub(crate) fn wait_until(
        &self,
        what: &str,
        mut holds: impl FnMut() -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        let start = Instant::now();
        while !holds()? {
            if start.elapsed() > DEADLINE {
                return Err(format!("not {what} after\n{}", self.screen()).into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Everything that has appeared. (Nothing that a test shows is more than ASCII.)
    pub(crate) fn screen(&self) -> String {
        let bytes = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()
    }

    /// Runs a command to its end and checks what `$?` is then.
    pub(crate) fn expect_status(&mut self, status: i32) -> Result<(), Stop> {
        self.insist("echo \"status-$?-\"", &format!("status-{status}-"))?;
        self.expect(PROMPT)
    }

    /// Checks that the terminal is the shell's again, with its settings.
    pub(crate) fn expect_terminal_back(&mut self) -> Result<(), Stop> {
        let shell = Pid::from_raw(i32::try_from(self.shell.id())?);
        assert_eq!(tcgetpgrp(&self.keyboard)?, shell, "the foreground is not the shell's");
        let flags = "stty -a | tr -s ' ;' '\\n' | grep -xE -- '-?(echo|icanon|isig)' | tr '\\n' +";
        self.insist(flags, "isig+icanon+echo+")?;
        self.expect(PROMPT)
    }

    /// The process group in the foreground.
    pub(crate) fn foreground(&self) -> Result<Pid, Stop> {
        Ok(tcgetpgrp(&self.keyboard)?)
    }

    /// Changes the size of the window, as a terminal emulator does.
    pub(crate) fn resize(&self, rows: u16, columns: u16) -> Result<(), Stop> {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // In one step, unlike stty: a shell that runs its trap for the first SIGWINCH can miss a
        // second one.
        // SAFETY: the descriptor is open, and the kernel only reads the structure.
        unsafe { set_window_size(open(&self.name)?.as_raw_fd(), &raw const size) }?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A stopped job of the shell would outlive a hangup; its own hangup continues it.
        let _ = self.keys("\x03\nkill -KILL $(jobs -p) 2>/dev/null; exit\n");
        let start = Instant::now();
        while self.shell.try_wait().is_ok_and(|ended| ended.is_none()) {
            if start.elapsed() > Duration::from_secs(2) {
                let _ = self.shell.kill();
                let _ = self.shell.wait();
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn open(name: &str) -> io::Result<OwnedFd> {
    let options = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name)?;
    Ok(options.into())
}

fn start_shell(caller: &Caller, terminal: &OwnedFd) -> io::Result<Child> {
    // setsid makes the terminal on its standard input the session's own.
    let mut command = caller.command("setsid");
    command
        .args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"])
        .env("PS1", PROMPT)
        .env("TERM", "dumb")
        .env("D", caller.program())
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal.try_clone()?);
    command.spawn()
}

/// Reads what appears until the last process at the terminal has closed it.
fn show(mut terminal: File, screen: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(got @ 1..) = terminal.read(&mut chunk) {
            screen.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..got]);
        }
    });
}
