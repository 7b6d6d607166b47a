//! Runs that must not happen.

use std::ffi::OsStr;
use std::process::Command;

use super::caller::{Caller, finish};
use super::suite::Outcome;

/// Leaves a mark wherever it may write one.
pub(crate) const MARK: [&str; 4] = ["--", "sh", "-c", "echo ran; echo ran >&2; : >mark; exit 0"];

/// Checks that `dsh-run` refuses: nothing ran, and the one line says each of `says`.
pub(crate) fn assert_refused(caller: &Caller, command: &mut Command, says: &[&str]) -> Outcome {
    let ended = finish(command)?;
    let what = format!("{command:?}\nstdout: {}\nstderr: {}", ended.stdout, ended.stderr);
    assert_eq!(ended.status.code(), Some(125), "{what}");
    assert_eq!(ended.stdout, "", "{what}");
    assert!(ended.stderr.starts_with("dsh-run: ") && ended.stderr.ends_with('\n'), "{what}");
    assert_eq!(ended.stderr.chars().filter(|c| c.is_control()).count(), 1, "{what}");
    for word in says {
        assert!(ended.stderr.contains(word), "no {word:?}: {what}");
    }
    assert!(!caller.path("workspace/mark").exists(), "it ran: {what}");
    Ok(())
}

/// The options, with a command that leaves a mark.
pub(crate) fn marked<S: AsRef<OsStr>>(
    caller: &Caller,
    options: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = caller.dsh_run(options);
    command.args(MARK);
    command
}
