//! Ending every descendant where no pid namespace does it.
//!
//! The caller is a child subreaper (prctl(2)), so orphans come to it and can be waited for. A
//! descendant that forks faster than the walk finds its children can outrun it; that is a gap in
//! the facts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

/// How long the walk goes on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Kills every descendant of this process but `spared` and theirs, and waits for those that are its
/// children.
pub(crate) fn kill_all(spared: &[Pid]) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let descendants = descendants(spared);
        // Stopped first, so that none forks while the others are killed.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &descendants {
                // Already gone, or not ours to signal: the next round sees.
                let _ = kill(*pid, signal);
            }
        }
        if reap(spared) && descendants.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for children that have ended; true when none but the spared are left.
fn reap(spared: &[Pid]) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return !spared.is_empty(),
            Err(Errno::EINTR) | Ok(_) => {}
            Err(_) => return true,
        }
    }
}

fn descendants(spared: &[Pid]) -> Vec<Pid> {
    let parents = parents();
    let me = getpid();
    let reaches_me = |mut pid: Pid| {
        // A table that changes while it is read could have a cycle: bounded by its size.
        for _ in 0..=parents.len() {
            if spared.contains(&pid) {
                return false;
            }
            match parents.get(&pid) {
                Some(parent) if *parent == me => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(|pid| reaches_me(*pid)).collect()
}

/// Every process's parent, proc_pid_stat(5).
fn parents() -> HashMap<Pid, Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
            // The name in parentheses may hold anything: count from its last parenthesis.
            let after = stat.iter().rposition(|&byte| byte == b')')?;
            let rest = String::from_utf8_lossy(&stat[after + 1..]).into_owned();
            let mut fields = rest.split_whitespace();
            let (state, parent) = (fields.next()?, fields.next()?.parse::<i32>().ok()?);
            // A zombie is dead; it is only to be waited for.
            (state != "Z").then(|| (Pid::from_raw(pid), Pid::from_raw(parent)))
        })
        .collect()
}
