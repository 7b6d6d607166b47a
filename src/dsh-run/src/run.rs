//! Running a command: the request, the facts, the exit status.

use std::os::fd::AsFd;
use std::path::PathBuf;

use dsh_facts::{Exit, Facts};
use dsh_sandbox::{Plan, Request, Run, WardenProgram, lost, ran, refused};

use crate::arguments::RunOptions;
use crate::error::{Error, describe};
use crate::facts_output::FactsOutput;
use crate::script;
use crate::summary;
use crate::supervise::{End, supervise, watch_signals};
use crate::terminal::Terminal;

/// Runs the command of the options and returns the exit status.
pub(crate) fn run(options: &RunOptions) -> Result<u8, Error> {
    let mut request = match options.request() {
        Ok(request) => request,
        Err(error) => {
            // Nothing can run, and the facts say why.
            let request = options.request_without_profile();
            let facts = FactsOutput::open(options, &request)?;
            facts.refused(refused(&request, error.fact()))?;
            return Err(error);
        }
    };
    let mut facts = FactsOutput::open(options, &request)?;
    match start_and_supervise(options, &mut request, &mut facts) {
        Ok((status, ended)) => {
            facts.ended(ended)?;
            Ok(status)
        }
        Err(error) => {
            facts.refused(refused(&request, error.fact()))?;
            Err(error)
        }
    }
}

/// From the request to the exit status and the facts.
fn start_and_supervise(
    options: &RunOptions,
    request: &mut Request,
    facts: &mut FactsOutput,
) -> Result<(u8, Facts), Error> {
    let script =
        options.script.as_deref().map(|path| script::prepare(path, request)).transpose()?;
    let signals = watch_signals()?;
    let mut terminal = Terminal::open();
    request.foreground = terminal.as_ref().is_some_and(Terminal::gives_foreground);
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
    let started =
        Run::start(request, &WardenProgram::Fork, descriptors, script.as_ref().map(AsFd::as_fd));
    let end = started.map_err(Error::from).and_then(|mut run| {
        facts.started(run.plan(), run.layers());
        if !options.quiet {
            tell_missing(request, run.plan());
        }
        let end = supervise(&mut run, options, &signals, terminal.as_mut(), facts);
        if let Err(Error::Sandbox(cause)) = &end {
            // It ran, so what follows must not say that it was refused.
            let facts = std::mem::replace(facts, FactsOutput::None);
            facts.ended(lost(run.plan(), run.layers(), run.denials(), cause))?;
        }
        Ok((run, end?))
    });
    if let Some(terminal) = &terminal {
        terminal.take_back();
        if end.as_ref().is_ok_and(|(_, end)| end.exit.signal.is_some()) {
            terminal.restore_settings();
        }
    }
    let (run, end) = end?;
    explain_not_executed(request, &end, options.quiet);
    let facts = ran(run.plan(), run.layers(), run.denials(), end.exit);
    summary::print(&facts, options);
    Ok((status(&end.exit), facts))
}

/// A path on the command line that is not there is more often a slip than meant.
fn tell_missing(request: &Request, plan: &Plan) {
    use std::io::Write;
    let is_missing = |path: &&PathBuf| {
        // As a relative path is resolved: from the current directory.
        std::path::absolute(path).is_ok_and(|path| plan.missing.contains(&path))
    };
    for (option, paths) in [("--hide", &request.hidden), ("--protect", &request.protected)] {
        for path in paths.iter().filter(is_missing) {
            let path = crate::error::one_line(&path.to_string_lossy());
            let _ = writeln!(std::io::stderr(), "dsh-run: {option} {path}: nothing is there");
        }
    }
}

fn explain_not_executed(request: &Request, end: &End, quiet: bool) {
    use std::io::Write;
    if let (Some(errno), Some(program), false) = (end.not_executed, request.command.first(), quiet)
    {
        let program = crate::error::one_line(&program.to_string_lossy());
        let _ = writeln!(std::io::stderr(), "dsh-run: {program}: {}", describe(errno));
    }
}

/// As a shell has it: 128 and the signal, 124 for the time limit.
fn status(exit: &Exit) -> u8 {
    if exit.timed_out {
        return 124;
    }
    let status = match (exit.code, exit.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 125,
    };
    u8::try_from(status & 0xff).unwrap_or(u8::MAX)
}
