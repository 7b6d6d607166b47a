//! An interactive shell inside has job control.

use crate::session::{CTRL_C, CTRL_Z, MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![job_control_works, it_ends_with_its_jobs];

/// The prompt of the shell inside.
const INNER: &str = "inside> ";

/// Starts an interactive shell inside.
fn start_inside(session: &mut Session, mode: &str) -> Outcome {
    session.line(&format!(
        "$D --mode {mode} --env 'PS1=inside''> ' -- bash --norc --noprofile --noediting -i"
    ))?;
    session.expect(INNER)
}

fn job_control_works(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        start_inside(&mut session, mode)?;
        session.line("sleep 100 &")?;
        session.expect(INNER)?;
        session.line("jobs")?;
        session.expect("Running")?;
        session.expect(INNER)?;
        let shell = session.foreground()?;
        session.line("fg")?;
        session.expect("sleep 100")?;
        session.wait_until("in the foreground", || Ok(session.foreground()? != shell))?;
        session.keys(CTRL_Z)?;
        session.expect("Stopped")?;
        session.expect(INNER)?;
        session.insist("jobs", "Stopped")?;
        session.expect(INNER)?;
        session.line("fg")?;
        session.wait_until("in the foreground", || Ok(session.foreground()? != shell))?;
        session.keys(CTRL_C)?;
        session.expect(INNER)?;
        session.insist("echo \"inner-$?-\"", "inner-130-")?;
        session.expect(INNER)?;
        session.line("exit 5")?;
        session.expect(PROMPT)?;
        session.expect_status(5)?;
        session.expect_terminal_back()?;
        assert!(!session.screen().contains("job control"), "{}", session.screen());
    }
    Ok(())
}

fn it_ends_with_its_jobs(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        start_inside(&mut session, mode)?;
        session.line("sleep 100 & cat & exec sh -c 'exit 6'")?;
        session.expect(PROMPT)?;
        session.expect_status(6)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}
