//! A command that leaves what it can.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::for_each_user;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::surroundings::{changes_by, left_after, obstacle};

pub(crate) fn cases() -> Vec<Case> {
    for_each_user("litter::seen", seen).into()
}

/// Leaves what it can wherever it can. In the widest rung that is the host, so there it leaves only
/// daemons. They have the caller's directory among their words, by which they are found.
pub(crate) fn littering(mode: &str) -> String {
    let objects = if mode == "danger-full-access" { "" } else { OBJECTS };
    format!("{objects}{DAEMONS}")
}

const DAEMONS: &str = r#"
sleeper='exec -a "$0" sleep 300'
(setsid bash -c "$sleeper" "$1" &)
setsid bash -c "trap '' TERM HUP INT QUIT; $sleeper" "$1" &
"#;
const OBJECTS: &str = r#"
f=$(mktemp) && d=$(mktemp -d) && mkfifo /tmp/fifo && : >/dev/shm/new && ln -s / "$d/link" &&
ipcmk -M 4096 -S 1 -Q >/dev/null && "$2" mq-open queue 'RDWR|CREAT' >/dev/null || exit 99
"#;

/// dsh-run with a littering command that ends in this way.
pub(crate) fn run(caller: &Caller, mode: &str, options: &[&str], end: &str) -> Command {
    let mut command = caller.dsh_run(["--mode", mode]);
    let script = format!("{}{end}", littering(mode));
    command.args(options).args(["--", "bash", "-c", &script, "litter"]).args(words(caller));
    command
}

/// What the script takes: the caller's directory, and the program that makes a message queue.
pub(crate) fn words(caller: &Caller) -> [PathBuf; 2] {
    [caller.path(""), caller.program().with_file_name("dsh-probe")]
}

/// Without this, that nothing is left would prove nothing.
fn seen(caller: &Caller) -> Verdict {
    if let Some(reason) = obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let script = format!("{OBJECTS}{DAEMONS}touch report; chmod 711 home; $3; exit 0");
    let mount = if caller.persona().is_root() { "mount -t tmpfs left /mnt" } else { "true" };
    let ((status, left), changes) = changes_by(caller, || {
        let mut command = caller.command("bash");
        command.args(["-c", &script, "litter"]).args(words(caller)).arg(mount);
        let status = command.current_dir(caller.path("")).stderr(Stdio::null()).status()?;
        let left = left_after(caller, Duration::ZERO);
        for process in &left {
            kill(process.pid, Signal::SIGKILL)?;
        }
        Ok((status.code(), left))
    })?;
    problems.equal("status", status, Some(0));
    problems.check(left.len() == 2, || format!("processes: {left:?}"));
    let changes = changes.join("\n");
    for what in [
        "/fifo is new",
        "/shm/new is new",
        "/queue is new",
        "/home: mode",
        "/report: ctime",
        "IPC: ",
    ] {
        problems.contains("changes", &changes, what);
    }
    if caller.persona().is_root() {
        problems.contains("changes", &changes, "mounts: ");
    }
    problems.verdict(&"what is left on purpose")
}
