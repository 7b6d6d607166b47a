//! `-c TEXT` and `--script FILE`.

use std::io::Write;
use std::process::Stdio;

use crate::support::caller::{Caller, finish};
use crate::support::running::Running;
use crate::support::suite::{Outcome, tests};

tests![a_text, a_file, a_file_in_the_hosts_tmp, standard_input];

const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];
const SHOW: &str = "echo \"$#: $1, $2\"; cat; exit 5\n";

fn a_text(caller: &Caller) -> Outcome {
    for mode in MODES {
        let arguments = ["--mode", mode, "-c", SHOW, "--", "a b", "--mode"];
        let ended = finish(&mut caller.dsh_run(arguments))?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("2: a b, --mode\n", ""));
        assert_eq!(ended.status.code(), Some(5), "{mode}");
        // It is bash, and more than one line.
        let text = "x=(1 2 3)\n[[ ${#x[@]} == 3 ]] && echo bash";
        let ended = finish(&mut caller.dsh_run(["--mode", mode, "-c", text]))?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("bash\n", ""));
    }
    Ok(())
}

/// The script gets its arguments, and standard input is the caller's.
fn assert_script_runs(caller: &Caller, script: &std::path::Path) -> Outcome {
    for mode in MODES {
        let mut command = caller.dsh_run(["--mode", mode, "--script"]);
        command.arg(script).args(["--", "a b", "-x"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        running.stdin().ok_or("no stdin")?.write_all(b"input\n")?;
        let ended = running.finish()?;
        let expected = ("2: a b, -x\ninput\n", "");
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), expected, "{mode}");
        assert_eq!(ended.status.code(), Some(5), "{mode}");
    }
    Ok(())
}

fn a_file(caller: &Caller) -> Outcome {
    assert_script_runs(caller, &caller.make_file("script with spaces", SHOW)?)
}

fn a_file_in_the_hosts_tmp(caller: &Caller) -> Outcome {
    let script = tempfile::NamedTempFile::new_in("/tmp")?;
    std::fs::write(script.path(), SHOW)?;
    caller.persona().own(script.path())?;
    assert_script_runs(caller, script.path())
}

fn standard_input(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut command = caller.dsh_run(["--mode", mode, "--script", "-", "--", "a", "b"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        running.stdin().ok_or("no stdin")?.write_all(SHOW.as_bytes())?;
        let ended = running.finish()?;
        // The script was all of standard input.
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("2: a, b\n", ""), "{mode}");
        assert_eq!(ended.status.code(), Some(5), "{mode}");
    }
    Ok(())
}
