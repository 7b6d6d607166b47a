//! `dsh-run schema`.

use dsh_facts::{Event, Facts, HostReport};
use schemars::schema_for;
use serde_json::json;

use crate::error::Error;
use crate::output::print_json;

/// Prints the JSON Schema of the facts file, of the lines of the facts stream, and of the doctor's
/// report.
pub(crate) fn schema() -> Result<u8, Error> {
    let schema = json!({
        "facts": schema_for!(Facts),
        "event": schema_for!(Event),
        "doctor": schema_for!(HostReport),
    });
    print_json(&schema)
}
