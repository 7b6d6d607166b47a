//! What the subcommands print.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;

use crate::error::{Error, errno, system};

/// Prints a JSON value alone on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<u8, Error> {
    let mut text = String::new();
    // JSON lets some control characters stand in a string as they are; a terminal obeys them.
    for c in serde_json::to_string_pretty(value).unwrap_or_default().chars() {
        if c.is_control() && c != '\n' {
            // Writing to a string does not fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    print(text.as_bytes())
}

/// Prints to standard output, and is done.
pub(crate) fn print(text: &[u8]) -> Result<u8, Error> {
    std::io::stdout()
        .write_all(text)
        .map_err(|error| system("write to standard output")(errno(&error)))?;
    Ok(0)
}
