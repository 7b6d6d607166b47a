//! What a command sees of the terminal.

use crate::session::{CTRL_BACKSLASH, MODES, PROMPT, Session};
use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};

tests![
    the_controlling_terminal_can_be_written,
    the_controlling_terminal_can_be_read,
    the_window_size_is_seen,
    it_has_a_name,
    every_standard_descriptor_is_it,
    its_modes_can_be_set,
];

fn the_controlling_terminal_can_be_written(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.line(&format!("$D --mode {mode} -c 'echo tty$((6*7)) >/dev/tty' >/dev/null"))?;
        session.expect("tty42")?;
        session.expect(PROMPT)?;
        session.expect_status(0)?;
    }
    Ok(())
}

fn the_controlling_terminal_can_be_read(caller: &Caller) -> Outcome {
    for mode in MODES {
        for elsewhere in ["", "</dev/null", "</dev/null 2>/dev/null"] {
            let mut session = Session::start(caller)?;
            let script = "echo ready$((6*7)); read x </dev/tty; echo got-$x-";
            session.line(&format!("$D --mode {mode} -c '{script}' {elsewhere}"))?;
            session.expect("ready42")?;
            session.line("word")?;
            session.expect("got-word-")?;
            session.expect(PROMPT)?;
            session.expect_terminal_back()?;
        }
    }
    Ok(())
}

fn the_window_size_is_seen(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session.resize(33, 97)?;
        // A shell ignores SIGQUIT of its own accord.
        let script = "trap \"stty size\" WINCH; trap exit QUIT; stty size; \
                      while :; do sleep 0.02; done";
        session.line(&format!("$D --mode {mode} -c '{script}'"))?;
        session.expect("33 97")?;
        session.resize(44, 111)?;
        session.expect("44 111")?;
        // Not Ctrl-C: a shell goes on after that when the program that it waits for did.
        session.keys(CTRL_BACKSLASH)?;
        session.expect(PROMPT)?;
    }
    Ok(())
}

fn it_has_a_name(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        session
            .line(&format!("$D --mode {mode} -c 'name=$(tty) && echo \"name${{name}}-$?-\"'"))?;
        session.expect("name/dev/")?;
        session.expect("-0-")?;
        session.expect(PROMPT)?;
    }
    Ok(())
}

fn every_standard_descriptor_is_it(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        let script = "for n in 0 1 2; do [ -t $n ] && echo tty$n-; done; \
                      ls -l /proc/$$/fd | wc -l; echo e$((6*7)) >/dev/stderr";
        session.line(&format!("$D --mode {mode} -c '{script}'"))?;
        for text in ["tty0-", "tty1-", "tty2-", "e42"] {
            session.expect(text)?;
        }
        session.expect(PROMPT)?;
    }
    Ok(())
}

fn its_modes_can_be_set(caller: &Caller) -> Outcome {
    for mode in MODES {
        let mut session = Session::start(caller)?;
        // As a program does that asks for a password.
        let script = "stty -echo; echo ask$((6*7)); read x; stty echo; echo \"${#x}got\"";
        session.line(&format!("$D --mode {mode} -c '{script}'"))?;
        session.expect("ask42")?;
        session.line("password")?;
        session.expect("8got")?;
        session.expect(PROMPT)?;
        assert!(!session.screen().contains("password"), "{}", session.screen());
        session.expect_terminal_back()?;
    }
    Ok(())
}
