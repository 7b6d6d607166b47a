//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Parser;

use crate::Result;

/// Measure what dsh-run costs.
#[derive(Parser)]
pub(crate) struct Args {
    /// The dsh-run to measure [default: the one next to this program]
    dsh_run: Option<PathBuf>,

    /// Timed runs of each program
    #[arg(short = 'n', long, default_value = "200")]
    pub(crate) runs: NonZeroU32,

    /// Instructions of the floor's seccomp filter, to match dsh-run's [default: the floor's own]
    #[arg(long, value_name = "N")]
    pub(crate) floor_filter: Option<u32>,

    /// Where the workspaces are made, on the disk that matters to you
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) dir: PathBuf,

    /// Files of the big workspace
    #[arg(long, default_value_t = 300_000)]
    pub(crate) files: u32,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    pub(crate) fn dsh_run(&self) -> Result<PathBuf> {
        match &self.dsh_run {
            // Programs are run from inside the workspace.
            Some(path) => Ok(std::path::absolute(path)?),
            None => beside("dsh-run"),
        }
    }
}

/// The program of that name next to this one.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}
