//! Nothing outlives its run: neither when dsh-run is killed at any moment, nor when a part of the
//! sandbox is, nor when a command will not end in its time. The commands leave daemons in sessions
//! of their own, some of which move from process to process.
//!
//! `DSH_KILL_ROUNDS` sets how often dsh-run is killed (200 for each user and signal; a tenth of it
//! without a pid namespace), `DSH_MUST_RUN=1` turns skips into failures.

mod support;

#[path = "kill/parts.rs"]
mod parts;
#[path = "kill/rounds.rs"]
mod rounds;
#[path = "kill/timeout.rs"]
mod timeout;
#[path = "kill/victim.rs"]
mod victim;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = [parts::cases(), rounds::cases(), timeout::cases()];
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), modules.into_iter().flatten().collect())
}
