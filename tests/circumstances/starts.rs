//! Many starts at a time.

use std::process::Stdio;
use std::time::Duration;

use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::running::Running;
use crate::{CONFINED, for_each_user};

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn cases() -> Vec<Case> {
    CONFINED
        .into_iter()
        .flat_map(|mode| {
            for_each_user(&format!("starts::{mode}"), move |caller| starts(caller, mode))
        })
        .collect()
}

/// 400, of which 32 run at a time: each ends well, and the caller has as many descriptors as before.
fn starts(caller: &Caller, mode: &str) -> Verdict {
    const SCRIPT: &str = r#"
count() { set -- /proc/$$/fd/*; count=$#; }
count
before=$count
seq 400 | xargs -P 32 -n 1 "$0" --mode "$1" -- echo | sort -n >../numbers
echo "status ${PIPESTATUS[1]}"
cmp ../numbers <(seq 400) && echo "each once"
count
[ "$count" = "$before" ] && echo "as many descriptors"
"#;
    let mut command = caller.command("bash");
    command.args(["-c", SCRIPT]).arg(caller.program()).arg(mode);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Running::start(&mut command)?.within(PATIENCE).finish()?;
    let mut problems = Problems::default();
    problems.equal("stderr", ended.stderr.as_str(), "");
    problems.equal("said", ended.stdout.as_str(), "status 0\neach once\nas many descriptors\n");
    problems.verdict(&mode)
}
