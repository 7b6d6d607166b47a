//! What was denied to a command, as the facts, the stream and the summary have it: all of that and
//! nothing else, whatever the command does, and without standing in its way.
//!
//! `DSH_RACE_ROUNDS` sets how often a race is run (5,000 times), `DSH_MUST_RUN=1` turns skips into
//! failures.

mod support;

#[path = "denials/amounts.rs"]
mod amounts;
#[path = "denials/callers.rs"]
mod callers;
#[path = "denials/exhaustion.rs"]
mod exhaustion;
#[path = "denials/levels.rs"]
mod levels;
#[path = "denials/metadata.rs"]
mod metadata;
#[path = "denials/names.rs"]
mod names;
#[path = "denials/nested.rs"]
mod nested;
#[path = "denials/observer_ends.rs"]
mod observer_ends;
#[path = "denials/operations.rs"]
mod operations;
#[path = "denials/outside.rs"]
mod outside;
#[path = "denials/races.rs"]
mod races;
#[path = "denials/refused_calls.rs"]
mod refused_calls;
#[allow(dead_code, reason = "the suite of the terminal uses the rest")]
#[path = "terminal/session.rs"]
mod session;
#[path = "denials/shell.rs"]
mod shell;
#[path = "denials/stuck.rs"]
mod stuck;
#[path = "denials/telling.rs"]
mod telling;
#[path = "everyday/toolchain.rs"]
mod toolchain;
#[path = "denials/without_mounts.rs"]
mod without_mounts;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = [
        amounts::cases(),
        callers::cases(),
        exhaustion::cases(),
        levels::cases(),
        metadata::cases(),
        names::cases(),
        nested::cases(),
        observer_ends::cases(),
        operations::cases(),
        races::cases(),
        refused_calls::cases(),
        shell::cases(),
        stuck::cases(),
        telling::cases(),
        without_mounts::cases(),
    ];
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), modules.into_iter().flatten().collect())
}
