//! dsh-run on the hosts that there are: containers, hardened distributions, old kernels, callers
//! that are confined themselves. Each allows other steps, and each must get the best that it
//! allows, said out loud: what is enforced, what is not, and nothing that is claimed and does not
//! hold.
//!
//! tests/hostsim.c imitates the hosts; only root can. `DSH_MUST_RUN=1` turns skips into failures.

mod support;

#[path = "hosts/callers.rs"]
mod callers;
#[path = "hosts/carve_outs.rs"]
mod carve_outs;
#[path = "hosts/claims.rs"]
mod claims;
#[path = "hosts/dead_file_systems.rs"]
mod dead_file_systems;
#[path = "hosts/doctor.rs"]
mod doctor;
#[path = "hosts/mount_table.rs"]
mod mount_table;
#[path = "hosts/mounts.rs"]
mod mounts;
#[path = "hosts/promises.rs"]
mod promises;
#[path = "hosts/refusals.rs"]
mod refusals;
#[path = "hosts/remedies.rs"]
mod remedies;
#[path = "hosts/table.rs"]
mod table;
#[path = "hosts/travel.rs"]
mod travel;

use std::process::ExitCode;

fn main() -> ExitCode {
    let modules = [
        callers::cases(),
        carve_outs::cases(),
        dead_file_systems::cases(),
        doctor::cases(),
        mounts::cases(),
        promises::cases(),
        refusals::cases(),
        travel::cases(),
    ];
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), modules.into_iter().flatten().collect())
}
