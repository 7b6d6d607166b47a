//! `dsh-run` at a terminal, started by an interactive shell: job control, keys, window size, and
//! that the shell gets its terminal back.

mod support;

#[path = "terminal/background.rs"]
mod background;
#[path = "terminal/giving_back.rs"]
mod giving_back;
#[path = "terminal/keys.rs"]
mod keys;
#[path = "terminal/pipelines.rs"]
mod pipelines;
#[path = "terminal/session.rs"]
mod session;
#[path = "terminal/shell_inside.rs"]
mod shell_inside;
#[path = "terminal/view.rs"]
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    support::suite::run(
        env!("CARGO_BIN_EXE_dsh-run"),
        &[
            ("background", background::TESTS),
            ("giving_back", giving_back::TESTS),
            ("keys", keys::TESTS),
            ("pipelines", pipelines::TESTS),
            ("shell_inside", shell_inside::TESTS),
            ("view", view::TESTS),
        ],
    )
}
