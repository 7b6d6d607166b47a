//! The command line as a person or a script uses it: exit statuses, refusals, descriptors,
//! arguments, environment, signals, limits and workspaces, as root and as an ordinary user.

mod support;

#[path = "command_line/arguments.rs"]
mod arguments;
#[path = "command_line/carve_outs.rs"]
mod carve_outs;
#[path = "command_line/descriptors.rs"]
mod descriptors;
#[path = "command_line/environment.rs"]
mod environment;
#[path = "command_line/findings.rs"]
mod findings;
#[path = "command_line/limits.rs"]
mod limits;
#[path = "command_line/refusals.rs"]
mod refusals;
#[path = "command_line/roots.rs"]
mod roots;
#[path = "command_line/scripts.rs"]
mod scripts;
#[path = "command_line/signals.rs"]
mod signals;
#[path = "command_line/statuses.rs"]
mod statuses;
#[path = "command_line/widest.rs"]
mod widest;
#[path = "command_line/workspaces.rs"]
mod workspaces;

use std::process::ExitCode;

fn main() -> ExitCode {
    support::suite::run(
        env!("CARGO_BIN_EXE_dsh-run"),
        &[
            ("arguments", arguments::TESTS),
            ("carve_outs", carve_outs::TESTS),
            ("descriptors", descriptors::TESTS),
            ("environment", environment::TESTS),
            ("findings", findings::TESTS),
            ("limits", limits::TESTS),
            ("refusals", refusals::TESTS),
            ("roots", roots::TESTS),
            ("scripts", scripts::TESTS),
            ("signals", signals::TESTS),
            ("statuses", statuses::TESTS),
            ("widest", widest::TESTS),
            ("workspaces", workspaces::TESTS),
        ],
    )
}
