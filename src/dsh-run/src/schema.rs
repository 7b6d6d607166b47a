//! `dsh-run schema`.

use dsh_facts::{Event, Facts};
use schemars::schema_for;
use serde_json::json;

use crate::error::{Error, system};

/// Prints the JSON Schema of the facts file and of the lines of the facts stream.
pub(crate) fn schema() -> Result<u8, Error> {
    let schema = json!({ "facts": schema_for!(Facts), "event": schema_for!(Event) });
    print_json(&schema)
}

/// Prints a JSON value alone on standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<u8, Error> {
    use std::io::Write;
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    writeln!(std::io::stdout(), "{text}")
        .map_err(|error| system("write to standard output")(crate::error::errno(&error)))?;
    Ok(0)
}
