//! Hosts on which a command has no mounts of its own, and observed runs there.

use std::io;
use std::process::Stdio;

use super::fixture::Fixture;
use super::kernel;
use super::observed::{LONG, Observed, staged_script};
use super::running::Running;
use super::stage::{Programs, Ran, Stage, dsh_run};

/// A host without user namespaces.
#[derive(Clone, Copy)]
pub(crate) struct Staged {
    /// As part of a test's name.
    pub(crate) name: &'static str,
    options: &'static [&'static str],
    pub(crate) uid: u32,
}

/// Docker's defaults: for root, and for an ordinary user.
pub(crate) const STAGES: [Staged; 2] = [
    Staged { name: "root", options: &["-s", "docker", "-m", "-c", "docker"], uid: 0 },
    Staged { name: "uid65534", options: &["-s", "docker", "-m", "-c", "none", "-n"], uid: 65534 },
];

impl Staged {
    pub(crate) fn stage(&self) -> Stage {
        Stage::new(self.options, self.uid)
    }

    /// Why it cannot be had here, if so.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let none = kernel::landlock().is_err().then_some("the kernel has no Landlock");
        Stage::obstacle().or(none)
    }

    /// Runs a script there, and reads its facts.
    pub(crate) fn run(
        &self,
        programs: &Programs,
        fixture: &Fixture,
        mode: &str,
        text: &str,
    ) -> io::Result<Observed> {
        let [shell, option, text] = staged_script(programs, fixture.top(), text);
        let words = ["--mode", mode, "--", &shell, &option, &text];
        Observed::staged(self.stage().run(programs, fixture, &words)?, fixture.top())
    }

    /// The same in workspace-write, for a command that takes long.
    pub(crate) fn run_long(
        &self,
        programs: &Programs,
        fixture: &Fixture,
        text: &str,
    ) -> io::Result<Observed> {
        let [shell, option, text] = staged_script(programs, fixture.top(), text);
        let words = ["--mode", "workspace-write", "--", &shell, &option, &text];
        let mut command = self.stage().command(programs)?;
        command.args(dsh_run(programs, fixture, &words)).current_dir(fixture.workspace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = Running::start(&mut command)?.within(LONG).finish()?;
        Observed::staged(Ran::new(finished, fixture, String::new())?, fixture.top())
    }
}
