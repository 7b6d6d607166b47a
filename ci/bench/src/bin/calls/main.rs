//! Opens one file again and again: `calls read|write FILE COUNT`. It does nothing else, so that a
//! pair of runs shows what one call costs.

use std::fs::File;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, file, count] = arguments.as_slice() else {
        eprintln!("calls: use read|write FILE COUNT");
        return ExitCode::FAILURE;
    };
    let mut options = File::options();
    match what.as_str() {
        "write" => options.write(true).create(true).truncate(false),
        _ => options.read(true),
    };
    for _ in 0..count.parse().unwrap_or(0_u32) {
        if let Err(error) = options.open(file) {
            eprintln!("calls: {file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
