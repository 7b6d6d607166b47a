//! dsh-run works whatever the workspace is and whoever calls it, and leaves nothing behind.
//!
//! What takes mounts, other owners or other users only root can set up. `DSH_MUST_RUN=1` turns skips
//! into failures.

mod support;

#[path = "circumstances/directories.rs"]
mod directories;
#[path = "circumstances/environment.rs"]
mod environment;
#[path = "circumstances/limits.rs"]
mod limits;
#[path = "circumstances/litter.rs"]
mod litter;
#[path = "circumstances/mess.rs"]
mod mess;
#[path = "circumstances/mounted.rs"]
mod mounted;
#[path = "circumstances/place.rs"]
mod place;
#[path = "circumstances/processes.rs"]
mod processes;
#[path = "circumstances/programs.rs"]
mod programs;
#[path = "circumstances/root_shell.rs"]
mod root_shell;
#[path = "circumstances/roots.rs"]
mod roots;
#[allow(dead_code, reason = "the suite of the terminal uses the rest")]
#[path = "terminal/session.rs"]
mod session;
#[path = "circumstances/starts.rs"]
mod starts;
#[path = "circumstances/surroundings.rs"]
mod surroundings;
#[path = "circumstances/views.rs"]
mod views;
#[path = "circumstances/workspaces.rs"]
mod workspaces;

use std::process::ExitCode;

pub(crate) use support::cases::for_each_user;
pub(crate) use support::observed::CONFINED;

fn main() -> ExitCode {
    let modules = [
        directories::cases(),
        environment::cases(),
        limits::cases(),
        litter::cases(),
        mess::cases(),
        mounted::cases(),
        processes::cases(),
        programs::cases(),
        roots::cases(),
        starts::cases(),
        views::cases(),
        workspaces::cases(),
    ];
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), modules.into_iter().flatten().collect())
}

/// Every rung.
pub(crate) const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];
