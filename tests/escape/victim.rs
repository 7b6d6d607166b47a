//! A process of the host that no attack may touch.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::support::binaries::Binaries;
use crate::support::persona::Persona;

/// Runs as the persona, so that the kernel's own permissions do not protect it, and in a process
/// group of its own. It ends with this value, and with the test process: its stdin is a pipe from
/// there.
pub(crate) struct Victim {
    process: Child,
    condition: String,
}

impl Victim {
    pub(crate) fn start(persona: Persona, binaries: &Binaries) -> io::Result<Self> {
        let mut command = Command::new(binaries.dsh_probe());
        command.arg("pause").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        persona.dress(&mut command);
        let mut victim = Self { process: command.spawn()?, condition: String::new() };
        victim.condition = victim.condition_now()?;
        Ok(victim)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What somebody has done to it.
    pub(crate) fn harm(&mut self) -> io::Result<Option<String>> {
        if let Some(status) = self.process.try_wait()? {
            return Ok(Some(format!("the host's process ended: {status}")));
        }
        let now = self.condition_now()?;
        let harmed = now != self.condition;
        Ok(harmed.then(|| format!("the host's process had {} and has {now}", self.condition)))
    }

    /// What others can change about a process: nice value, tracer, affinity, limits.
    fn condition_now(&self) -> io::Result<String> {
        let proc = format!("/proc/{}", self.id());
        let stat = std::fs::read_to_string(format!("{proc}/stat"))?;
        let nice = stat.split_whitespace().nth(18).unwrap_or_default().to_owned();
        let status = std::fs::read_to_string(format!("{proc}/status"))?;
        let fields = status
            .lines()
            .filter(|line| line.starts_with("TracerPid") || line.starts_with("Cpus_allowed_list"));
        let limits = std::fs::read_to_string(format!("{proc}/limits"))?;
        let files = limits.lines().filter(|line| line.starts_with("Max open files"));
        Ok(fields.chain(files).fold(format!("nice {nice}"), |all, line| format!("{all}, {line}")))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only when the process has already ended, which `harm` has reported.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}
