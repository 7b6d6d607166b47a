//! The command line.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// Instructions of the floor's seccomp filter, [default: as many as dsh-run's has]
    #[arg(long, value_name = "N")]
    pub(crate) floor_filter: Option<u32>,

    /// Where the workspaces are made, on the disk that matters to you
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) dir: PathBuf,

    /// Files of the big workspace
    #[arg(long, default_value_t = 300_000)]
    pub(crate) files: u32,

    /// Measure what observation costs real work, instead of what a start costs; takes minutes
    #[arg(long)]
    pub(crate) observation: bool,

    /// Timed rounds of each kind of work
    #[arg(long, default_value = "5")]
    pub(crate) rounds: NonZeroU32,

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

/// How many instructions dsh-run's own filter has, by its own account.
pub(crate) fn filter_length(dsh_run: &Path) -> Result<u32> {
    let output = Command::new(dsh_run).args(["explain", "--json"]).output()?;
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let length = plan["filter_instructions"].as_u64().ok_or("explain tells no filter length")?;
    Ok(u32::try_from(length)?)
}

/// The program of that name next to this one.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}
