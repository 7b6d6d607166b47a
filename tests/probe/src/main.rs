//! `dsh-probe ATTEMPT [ARGS…]` runs inside the sandbox and makes one forbidden attempt.
//!
//! It prints one line of JSON and exits 0 whether the kernel refused the attempt or not: what is
//! right is the suite's business, not the probe's. Exit status 2 means that the attempt is unknown
//! or was called wrongly.

mod args;
mod attempt;
mod calls;
mod descriptors;
mod files;
mod internet;
mod ipc;
mod memory;
mod metadata;
mod mounts;
mod names;
mod namespaces;
mod network;
mod numbers;
mod oracle;
mod pointers;
mod privileges;
mod processes;
mod races;
mod spelled;
mod survey;
mod sys;
mod threads;
mod unix;
mod whereabouts;

use std::process::ExitCode;

use attempt::{Attempt, Stop, Trail};

/// Every attempt, a table for each family of attacks.
const FAMILIES: [&[Attempt]; 18] = [
    calls::ATTEMPTS,
    descriptors::ATTEMPTS,
    files::ATTEMPTS,
    internet::ATTEMPTS,
    ipc::ATTEMPTS,
    metadata::ATTEMPTS,
    mounts::ATTEMPTS,
    names::ATTEMPTS,
    namespaces::ATTEMPTS,
    network::ATTEMPTS,
    oracle::ATTEMPTS,
    pointers::ATTEMPTS,
    privileges::ATTEMPTS,
    processes::ATTEMPTS,
    races::ATTEMPTS,
    survey::ATTEMPTS,
    threads::ATTEMPTS,
    unix::ATTEMPTS,
];

fn main() -> ExitCode {
    // Its own name may be anything.
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let name = words.next().unwrap_or_default();
    let Some((name, run)) = FAMILIES.into_iter().flatten().find(|(known, _)| *known == name) else {
        eprintln!("dsh-probe: unknown attempt {name:?}");
        return ExitCode::from(2);
    };
    // Only from in here is it known: the sandbox's init is the command's parent.
    let init = std::os::unix::process::parent_id().to_string();
    let arguments: Vec<String> = words.map(|word| word.replace("{init}", &init)).collect();
    let mut trail = Trail::new(name);
    if let Err(Stop::Misuse(what)) = run(&mut trail, &arguments) {
        eprintln!("dsh-probe: {name}: {what}");
        return ExitCode::from(2);
    }
    println!("{}", trail.into_json());
    ExitCode::SUCCESS
}
