//! What `--facts` and `--facts-fd` say of a run: their shape, their truth, and that the command has
//! no hand in them.

mod support;

#[path = "facts/ends.rs"]
mod ends;
#[path = "facts/file.rs"]
mod file;
#[path = "facts/forgery.rs"]
mod forgery;
#[path = "facts/reading.rs"]
mod reading;
#[path = "facts/shape.rs"]
mod shape;
#[path = "facts/stream.rs"]
mod stream;

use std::process::ExitCode;

fn main() -> ExitCode {
    support::suite::run(
        env!("CARGO_BIN_EXE_dsh-run"),
        &[
            ("ends", ends::TESTS),
            ("file", file::TESTS),
            ("forgery", forgery::TESTS),
            ("shape", shape::TESTS),
            ("stream", stream::TESTS),
        ],
    )
}
