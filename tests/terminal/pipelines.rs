//! Pipelines: the terminal goes to whoever asks for it.

use crate::session::{CTRL_C, CTRL_D, MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![
    a_command_that_reads_the_terminal_into_a_pipe,
    a_sibling_that_reads_the_terminal,
    a_sibling_that_reads_it_while_the_command_runs,
    ctrl_c_ends_the_whole_pipeline,
];

fn a_command_that_reads_the_terminal_into_a_pipe(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -- cat | sed -u s/^/got-/"))?;
        session.line("word")?;
        session.expect("got-word")?;
        session.line("other")?;
        session.expect("got-other")?;
        session.keys(CTRL_D)?;
        session.expect(PROMPT)?;
        session.expect_status(0)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

/// A pager: shows its input and then asks the terminal.
const PAGER: &str =
    "sh -c 'read line; echo \"page-$line-\"; read key </dev/tty; echo \"key-$key-\"'";

fn a_sibling_that_reads_the_terminal(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'echo text$((6*7))' | {PAGER}"))?;
        session.expect("page-text42-")?;
        session.line("q")?;
        session.expect("key-q-")?;
        session.expect(PROMPT)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn a_sibling_that_reads_it_while_the_command_runs(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        let script = "echo text$((6*7)); while sleep 0.05; do echo more || exit; done";
        session.line(&format!("$D --mode {mode} -c '{script}' | {PAGER}"))?;
        session.expect("page-text42-")?;
        session.line("q")?;
        session.expect("key-q-")?;
        session.expect(PROMPT)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}

fn ctrl_c_ends_the_whole_pipeline(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'echo text$((6*7)); sleep 300' | cat"))?;
        session.expect("text42")?;
        session.keys(CTRL_C)?;
        session.expect(PROMPT)?;
        session.expect_terminal_back()?;
    }
    Ok(())
}
