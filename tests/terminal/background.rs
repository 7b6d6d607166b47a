//! `dsh-run … &`.

use crate::session::{CTRL_D, MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![output_does_not_stop_it, reading_the_terminal_stops_it, what_does_not_read_runs_to_its_end,];

fn output_does_not_stop_it(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'echo out$((6*7))' & wait $!"))?;
        session.expect("out42")?;
        session.expect(PROMPT)?;
        session.expect_status(0)?;
    }
    Ok(())
}

fn reading_the_terminal_stops_it(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'read x; echo got-$x-; cat' &"))?;
        session.expect("Stopped")?;
        // The shell itself was not disturbed.
        session.line("echo still$((6*7))")?;
        session.expect("still42")?;
        session.line("fg")?;
        session.expect("--mode")?;
        session.line("word")?;
        session.expect("got-word-")?;
        session.keys(CTRL_D)?;
        session.expect(PROMPT)?;
        session.expect_status(0)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn what_does_not_read_runs_to_its_end(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'sleep 0.2; exit 9' &"))?;
        session.expect(PROMPT)?;
        // Its end must not take the foreground from a job that has it meanwhile.
        session.line("echo cat$((6*7)); cat")?;
        session.expect("cat42")?;
        session.expect("Exit 9")?;
        session.line("word")?;
        session.expect("word")?;
        session.expect("word")?;
        session.keys(CTRL_D)?;
        session.expect(PROMPT)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}
