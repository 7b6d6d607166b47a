//! The processes of the host: proc_pid_stat(5), proc_pid_cmdline(5).

use std::fs;

use nix::unistd::Pid;

/// A process that has not ended.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: Pid,
    /// Its parent's.
    pub(crate) parent: Pid,
    /// Its short name.
    pub(crate) name: String,
    /// Its words, each ended by a NUL. A forked process has those of its parent until it executes
    /// another program.
    pub(crate) command_line: String,
}

/// Every process in whose words the mark occurs.
pub(crate) fn marked(mark: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| look(pid, mark)).collect()
}

fn look(pid: i32, mark: &str) -> Option<Process> {
    let read = |file| fs::read(format!("/proc/{pid}/{file}")).ok();
    let command_line = String::from_utf8_lossy(&read("cmdline")?).into_owned();
    if !command_line.contains(mark) {
        return None;
    }
    let stat = String::from_utf8_lossy(&read("stat")?).into_owned();
    // The name in parentheses may hold anything: the fields count from its last parenthesis.
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    // A zombie has ended; its parent has only not asked yet.
    (state != "Z" && state != "X").then(|| Process {
        pid: Pid::from_raw(pid),
        parent: Pid::from_raw(parent),
        name: name.to_owned(),
        command_line,
    })
}
