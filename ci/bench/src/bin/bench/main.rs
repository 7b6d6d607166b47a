//! What `dsh-run` costs beside a bare process, beside bubblewrap, and beside the floor that the
//! kernel itself sets.
//!
//! Everything that is compared is timed in one run, interleaved: two runs at different moments
//! differ more than the programs do. A missed goal is a result, not a failure; a program that fails
//! is one, since its time means nothing.

mod args;
mod goals;
mod layers;
mod observation;
mod programs;
mod report;
mod scratch;
mod stats;
mod timing;

use std::process::ExitCode;

use args::Args;
use clap::Parser as _;
use report::{BigWorkspace, Report};
use scratch::Scratch;

/// Whatever ended the run, told in one line.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let scratch = Scratch::new(&args.dir)?;
    if args.observation {
        let observation = observation::measure(args, &scratch)?;
        if args.json {
            println!("{}", serde_json::to_string_pretty(&observation)?);
        } else {
            print!("{observation}");
        }
        return Ok(());
    }
    let small = scratch.workspace("empty", 0)?;
    let programs = programs::start_up(args, &small)?;
    let starts = timing::interleaved(&programs, args.runs.get())?;
    let layers = layers::trace(args, &small, &scratch.path().join("facts.json"))?;

    let big = scratch.workspace("big", args.files)?;
    let pair = [programs::workspace_write(args, &small)?, programs::workspace_write(args, &big)?];
    let sizes = timing::interleaved(&pair, args.runs.get())?;

    let report = Report {
        runs: args.runs.get(),
        goals: goals::judge(&starts),
        bwrap: starts.iter().any(|samples| samples.name == programs::BWRAP),
        programs: report::rows(&starts),
        big_workspace: BigWorkspace::new(args.files, &sizes[0], &sizes[1]),
        layers,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
