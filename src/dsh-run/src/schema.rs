//! `dsh-run schema`.

use dsh_facts::{Event, Facts};
use schemars::schema_for;
use serde_json::json;

use crate::error::Error;
use crate::output::print_json;

/// Prints the JSON Schema of the facts file and of the lines of the facts stream.
pub(crate) fn schema() -> Result<u8, Error> {
    let schema = json!({ "facts": schema_for!(Facts), "event": schema_for!(Event) });
    print_json(&schema)
}
