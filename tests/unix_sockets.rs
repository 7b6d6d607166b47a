//! Unix sockets: those of the host are out of reach, those of the command work as outside, and so do
//! the connections that pass the same way, those of the internet.
//!
//! `DSH_RACE_ROUNDS` sets how often a race is run (5,000 times), `DSH_MUST_RUN=1` turns skips into
//! failures.

mod support;

#[path = "unix_sockets/abstract_names.rs"]
mod abstract_names;
#[path = "unix_sockets/allowed.rs"]
mod allowed;
#[path = "unix_sockets/host.rs"]
mod host;
#[path = "unix_sockets/identity.rs"]
mod identity;
#[path = "unix_sockets/inside.rs"]
mod inside;
#[path = "unix_sockets/internet.rs"]
mod internet;
#[path = "unix_sockets/races.rs"]
mod races;
#[path = "unix_sockets/refused.rs"]
mod refused;
#[path = "unix_sockets/without_mounts.rs"]
mod without_mounts;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = [
        abstract_names::cases(),
        allowed::cases(),
        identity::cases(),
        inside::cases(),
        internet::cases(),
        races::cases(),
        refused::cases(),
        without_mounts::cases(),
    ];
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), modules.into_iter().flatten().collect())
}
