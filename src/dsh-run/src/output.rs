//! What the subcommands print.

use std::io::Write;

use serde::Serialize;

use crate::error::{Error, errno, system};

/// Prints a JSON value alone on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<u8, Error> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    print(&text)
}

/// Prints to standard output, and is done.
pub(crate) fn print(text: &[u8]) -> Result<u8, Error> {
    std::io::stdout()
        .write_all(text)
        .map_err(|error| system("write to standard output")(errno(&error)))?;
    Ok(0)
}
