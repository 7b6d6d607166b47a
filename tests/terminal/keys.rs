//! Keys that raise signals reach the command.

use crate::session::{CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![ctrl_c_interrupts, ctrl_c_can_be_handled, ctrl_z_stops, ctrl_backslash_quits];

fn ctrl_c_interrupts(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'echo ready$((6*7)); sleep 300'"))?;
        session.expect("ready42")?;
        session.keys(CTRL_C)?;
        session.expect(PROMPT)?;
        session.expect_status(130)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn ctrl_c_can_be_handled(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        let script = "trap \"echo handled\\$((6*7)); exit 3\" INT; echo ready$((6*7)); \
                      while :; do sleep 0.02; done";
        session.line(&format!("$D --mode {mode} -c '{script}'"))?;
        session.expect("ready42")?;
        session.keys(CTRL_C)?;
        session.expect("handled42")?;
        session.expect(PROMPT)?;
        session.expect_status(3)?;
    }
    Ok(())
}

fn ctrl_z_stops(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session
            .line(&format!("$D --mode {mode} -c 'echo ready$((6*7)); cat; echo end$((6*7))'"))?;
        session.expect("ready42")?;
        // Twice: stopping must leave nothing behind that a second time trips over.
        for round in ["first", "second"] {
            session.keys(CTRL_Z)?;
            session.expect("Stopped")?;
            session.expect(PROMPT)?;
            session.expect_terminal_back()?;
            session.line("fg")?;
            session.expect("--mode")?;
            session.line(round)?;
            // Once from the terminal's echo, once from the command.
            session.expect(round)?;
            session.expect(round)?;
        }
        session.keys(CTRL_D)?;
        session.expect("end42")?;
        session.expect(PROMPT)?;
        session.expect_status(0)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn ctrl_backslash_quits(caller: &Caller) -> Outcome {
    let mut session = Session::start(caller)?;
    session.line("$D -- sh -c 'echo ready$((6*7)); exec sleep 300'")?;
    session.expect("ready42")?;
    session.keys(CTRL_BACKSLASH)?;
    session.expect(PROMPT)?;
    session.expect_status(131)?;
    session.expect_terminal_back()
}
