//! The shell has its terminal back, whatever became of the command.

use nix::sys::signal::{Signal, kill};

use crate::session::{MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![
    after_a_command_that_was_killed,
    after_a_command_that_timed_out,
    after_a_refusal,
    after_a_command_that_cannot_be_executed,
    after_dsh_run_was_killed,
    after_dsh_run_was_asked_to_end,
];

fn after_a_command_that_was_killed(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'stty raw -echo; kill -9 $$'"))?;
        session.expect(PROMPT)?;
        session.expect_status(137)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn after_a_command_that_timed_out(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        let options = format!("--mode {mode} --timeout 300ms --kill-after 200ms");
        for script in [
            "stty raw -echo; sleep 300",
            "trap : TERM; stty raw -echo; while :; do sleep 0.02; done",
        ] {
            session.line(&format!("$D {options} -c '{script}'"))?;
            session.expect(PROMPT)?;
            session.expect_status(124)?;
            session.expect_terminal_back()?;
        }
    }
    Ok(())
}

fn after_a_refusal(caller: &Caller) -> Outcome {
    let mut session = Session::start(caller)?;
    for arguments in ["--workspace missing -- cat", "--workdir /missing -- cat"] {
        session.line(&format!("$D {arguments}"))?;
        session.expect("dsh-run: ")?;
        session.expect(PROMPT)?;
        session.expect_status(125)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn after_a_command_that_cannot_be_executed(caller: &Caller) -> Outcome {
    let mut session = Session::start(caller)?;
    session.line("$D -- /miss''ing")?;
    session.expect("dsh-run: /missing: ")?;
    session.expect(PROMPT)?;
    session.expect_status(127)?;
    session.expect_terminal_back()
}

/// Starts a command whose dsh-run the test knows.
fn start_known(caller: &Caller, mode: &str) -> Result<Session, crate::support::suite::Stop> {
    let mut session = Session::start(caller)?;
    session.line(&format!(
        "sh -c 'echo $$ >../pid; exec $D --mode {mode} -- sh -c \"echo ready\\$((6*7)); sleep 300\"'"
    ))?;
    session.expect("ready42")?;
    Ok(session)
}

fn after_dsh_run_was_killed(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = start_known(caller, mode)?;
        kill(caller.pid()?, Signal::SIGKILL)?;
        session.expect("Killed")?;
        session.expect(PROMPT)?;
        session.expect_status(137)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn after_dsh_run_was_asked_to_end(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = start_known(caller, mode)?;
        kill(caller.pid()?, Signal::SIGTERM)?;
        session.expect(PROMPT)?;
        session.expect_status(143)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}
