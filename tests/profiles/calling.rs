//! Runs with profiles and with facts.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use dsh_facts::Facts;

use crate::support::caller::{Caller, finish};
use crate::support::running::Finished;
use crate::support::suite::Stop;

/// Where the persona's own profiles lie, below its home directory.
pub(crate) const OWN: &str = "home/.config/dsh/profiles";

/// Makes one of the persona's own profiles.
pub(crate) fn own_profile(caller: &Caller, name: &str, text: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(caller.path(OWN))?;
    caller.make_file(format!("{OWN}/{name}.toml"), text)
}

/// Runs the command, given beside a facts file, and reads the facts.
pub(crate) fn facts_of(caller: &Caller, command: &mut Command) -> Result<(Finished, Facts), Stop> {
    let ended = finish(command)?;
    let text = fs::read_to_string(caller.path("facts.json"))
        .map_err(|error| format!("no facts: {error}: {}", ended.stderr))?;
    fs::remove_file(caller.path("facts.json"))?;
    Ok((ended, serde_json::from_str(&text)?))
}

/// `dsh-run` with a facts file and these arguments, run to its end.
pub(crate) fn run(caller: &Caller, arguments: &[&str]) -> Result<(Finished, Facts), Stop> {
    let mut command = caller.dsh_run(["--facts", "../facts.json"]);
    facts_of(caller, command.args(arguments))
}

/// The same, with a script in `workspace-write` unless the options say otherwise; it must succeed
/// and print nothing on standard error.
pub(crate) fn script(
    caller: &Caller,
    options: &[&str],
    text: &str,
) -> Result<(String, Facts), Stop> {
    let mut arguments = vec![];
    if !options.iter().any(|option| ["--mode", "--profile"].contains(option)) {
        arguments.extend(["--mode", "workspace-write"]);
    }
    arguments.extend(options);
    arguments.extend(["-c", text]);
    let (ended, facts) = run(caller, &arguments)?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{options:?} {text}");
    Ok((ended.stdout, facts))
}

/// A path of the caller's as the facts have it.
pub(crate) fn resolved(caller: &Caller, name: &str) -> String {
    let path = caller.path(name);
    let (parent, name) = (path.parent(), path.file_name());
    let parent = parent.and_then(|parent| parent.canonicalize().ok()).unwrap_or_default();
    parent.join(name.unwrap_or_default()).to_string_lossy().into_owned()
}
