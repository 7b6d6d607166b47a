//! Profiles, hidden and protected paths as a user meets them: what each key does in a real run, how
//! a profile is found, read and refused, and that what is hidden or protected stays so, as root and
//! as an ordinary user.

mod support;

#[path = "profiles/aliases.rs"]
mod aliases;
#[path = "profiles/attempts.rs"]
mod attempts;
#[path = "profiles/calling.rs"]
mod calling;
#[path = "profiles/finding.rs"]
mod finding;
#[path = "profiles/hiding.rs"]
mod hiding;
#[path = "profiles/keys.rs"]
mod keys;
#[path = "profiles/ladder.rs"]
mod ladder;
#[path = "profiles/mistakes.rs"]
mod mistakes;
#[path = "profiles/printing.rs"]
mod printing;
#[path = "profiles/protecting.rs"]
mod protecting;
#[path = "profiles/reading.rs"]
mod reading;
#[path = "profiles/ways.rs"]
mod ways;

use std::process::ExitCode;

fn main() -> ExitCode {
    support::suite::run(
        env!("CARGO_BIN_EXE_dsh-run"),
        &[
            ("aliases", aliases::TESTS),
            ("attempts", attempts::TESTS),
            ("finding", finding::TESTS),
            ("hiding", hiding::TESTS),
            ("keys", keys::TESTS),
            ("ladder", ladder::TESTS),
            ("mistakes", mistakes::TESTS),
            ("printing", printing::TESTS),
            ("protecting", protecting::TESTS),
            ("reading", reading::TESTS),
            ("ways", ways::TESTS),
        ],
    )
}
