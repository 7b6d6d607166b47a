//! What only root can set up around a caller who need not be root.

use std::process::Command;

use crate::support::caller::Caller;

/// A shell of root's in the workspace, with a mount namespace of its own. `"$@"` is dsh-run as the
/// caller runs it, with the arguments that follow.
pub(crate) fn shell_of_root(caller: &Caller, script: &str) -> Command {
    let id = caller.persona().id();
    let mut command = Command::new("unshare");
    caller.place(&mut command);
    command
        .args(["--mount", "sh", "-euc", script, "sh", "setpriv"])
        .args([format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".to_owned()])
        .arg(caller.program());
    command
}
