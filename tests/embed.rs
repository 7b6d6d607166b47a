//! A program with threads that runs commands through the library. This one is its own warden:
//! `dispatch()` comes first in its `main`.

mod support;

#[path = "embed/commands.rs"]
mod commands;
#[path = "embed/dispatching.rs"]
mod dispatching;
#[path = "embed/ends.rs"]
mod ends;
#[path = "embed/parent.rs"]
mod parent;
#[path = "embed/starts.rs"]
mod starts;
#[path = "embed/world.rs"]
mod world;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use nix::unistd::geteuid;
use tempfile::TempDir;

use support::caller::{Caller, finish};
use support::persona::Persona;
use support::skip::skip;
use support::suite::{Test, conclude};

fn main() -> ExitCode {
    dsh_sandbox::dispatch();
    if let Some(arguments) = parent::harness_arguments() {
        return parent::be_harness(&arguments);
    }
    if let Some(workspace) = starts::workspace_of_many() {
        return starts::start_many(workspace.as_ref());
    }
    let arguments = Arguments::from_args();
    // Before anything is spawned: a child that inherits the file while it is written would make
    // executing it ETXTBSY.
    let copy = Arc::new((geteuid().is_root() && !arguments.list).then(copy_program));
    let modules: [(&str, &[Test]); 5] = [
        ("commands", commands::TESTS),
        ("dispatching", dispatching::TESTS),
        ("ends", ends::TESTS),
        ("parent", parent::TESTS),
        ("starts", starts::TESTS),
    ];
    let mut trials = Vec::new();
    for (module, tests) in modules {
        for &(name, test) in tests {
            for persona in [Persona::ROOT, Persona::ordinary()] {
                let name = format!("{module}::{name}::{}", persona.label());
                let copy = Arc::clone(&copy);
                trials.push(Trial::ignorable_test(name.clone(), move || {
                    if let Some(reason) = persona.obstacle() {
                        return skip(reason);
                    }
                    if geteuid().is_root() && !persona.is_root() {
                        let copy = copy.as_ref().as_ref().ok_or("no copy of this program")?;
                        return run_as(persona, &name, copy.as_ref()?);
                    }
                    conclude(test(&Caller::new(persona, std::env::current_exe()?)?))
                }));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// This program, where every user can execute it.
fn copy_program() -> Result<TempDir, String> {
    let copy = || -> std::io::Result<TempDir> {
        let directory = tempfile::Builder::new().prefix("dsh-embed-").tempdir_in("/var/tmp")?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        fs::copy(std::env::current_exe()?, program_in(&directory))?;
        Ok(directory)
    };
    copy().map_err(|error| format!("cannot copy this program: {error}"))
}

fn program_in(directory: &TempDir) -> PathBuf {
    directory.path().join("embed")
}

/// The library is called by the test itself, so another user's test is another process.
fn run_as(persona: Persona, name: &str, directory: &TempDir) -> Result<Completion, Failed> {
    let caller = Caller::new(persona, program_in(directory))?;
    let mut command = caller.command(caller.program());
    let ended = finish(
        command
            .args(["--exact", name, "--nocapture"])
            .envs(std::env::var_os("DSH_MUST_RUN").map(|value| ("DSH_MUST_RUN", value))),
    )?;
    if !ended.status.success() {
        return Err(format!("{}{}", ended.stdout, ended.stderr).into());
    }
    if ended.stdout.contains("1 passed") {
        return Ok(Completion::Completed);
    }
    skip(ended.stdout)
}
