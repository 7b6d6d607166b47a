//! Runs that leave facts, read and checked against the schema that the program itself prints.

use std::fs;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use crate::support::caller::{Caller, finish};
use crate::support::running::Finished;
use crate::support::schema::violations;
use crate::support::suite::Stop;

/// The modes that confine.
pub(crate) const CONFINED: [&str; 2] = ["read-only", "workspace-write"];

/// A member of a value by its JSON pointer; null where there is none.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Checks a value against one of the schemas that `dsh-run schema` prints.
pub(crate) fn assert_follows_schema(
    caller: &Caller,
    which: &str,
    value: &Value,
) -> Result<(), Stop> {
    let printed = finish(&mut caller.dsh_run(["schema"]))?;
    assert_eq!((printed.status.code(), printed.stderr.as_str()), (Some(0), ""));
    let schemas: Value = serde_json::from_str(&printed.stdout)?;
    let schema = schemas.get(which).ok_or("no such schema")?;
    let found = violations(schema, schema, value, which);
    assert!(found.is_empty(), "{}\n{value:#}", found.join("\n"));
    Ok(())
}

/// The facts file that [`run`] names.
pub(crate) const FACTS: &str = "facts.json";

/// `dsh-run` with a facts file beside the workspace, and then these arguments.
pub(crate) fn command(caller: &Caller, arguments: &[&str]) -> Command {
    let mut command = caller.dsh_run(["--facts"]);
    command.arg(caller.path(FACTS)).args(arguments);
    command
}

/// The facts in the file.
pub(crate) fn read(caller: &Caller) -> Result<Value, Stop> {
    let text = fs::read_to_string(caller.path(FACTS))
        .map_err(|error| format!("there is no facts file: {error}"))?;
    let facts = serde_json::from_str(&text)?;
    assert_follows_schema(caller, "facts", &facts)?;
    Ok(facts)
}

/// Runs the command and reads its facts, not those of a run before.
pub(crate) fn run(caller: &Caller, arguments: &[&str]) -> Result<(Finished, Value), Stop> {
    let _ = fs::remove_file(caller.path(FACTS));
    let ended = finish(&mut command(caller, arguments))?;
    Ok((ended, read(caller)?))
}

/// Runs with `--facts-fd` on a pipe whose lines are read.
pub(crate) fn stream(caller: &Caller, arguments: &[&str]) -> Result<(Finished, Vec<Value>), Stop> {
    let ended = finish(&mut streaming(caller, arguments))?;
    Ok((ended, lines(caller)?))
}

/// `dsh-run` with its stream in a file beside the workspace, as descriptor 7.
pub(crate) fn streaming(caller: &Caller, arguments: &[&str]) -> Command {
    let mut command = caller.command("sh");
    command.args(["-c", "echo $$ >../pid; exec \"$0\" --facts-fd 7 \"$@\" 7>>../stream"]);
    command.arg(caller.program()).args(arguments).stdin(Stdio::null());
    command
}

/// What has come over the stream.
pub(crate) fn lines(caller: &Caller) -> Result<Vec<Value>, Stop> {
    let text = fs::read_to_string(caller.path("stream"))?;
    assert!(text.is_empty() || text.ends_with('\n'), "half a line: {text}");
    let mut events = Vec::new();
    for line in text.lines() {
        let event = serde_json::from_str(line)?;
        assert_follows_schema(caller, "event", &event)?;
        events.push(event);
    }
    Ok(events)
}
