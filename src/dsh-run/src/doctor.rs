//! `dsh-run doctor`: what this host offers, and what each mode comes to on it.

mod text;

use dsh_facts::{HostReport, ModeLevel};
use dsh_sandbox::{SandboxError, WardenProgram, host_report, probe};

use crate::error::Error;
use crate::output::{print, print_json};

/// Probes the host and prints the report.
pub(crate) fn doctor(as_json: bool) -> Result<u8, Error> {
    let host = probe(&WardenProgram::Fork).map_err(|error| match error {
        SandboxError::Layer(error) => Error::Probe(error),
        other => other.into(),
    })?;
    let report = host_report(&host).map_err(SandboxError::from)?;
    if as_json {
        print_json(&report)?;
    } else {
        print(text::of(&report).as_bytes())?;
    }
    Ok(status(&report))
}

/// 0 when both confined modes run here, with or without gaps; 1 when one does not, 2 when neither
/// does.
///
/// 1 does not occur: both modes stand on the same row of the ladder. It is kept for a mode that
/// will ask more of a host.
fn status(report: &HostReport) -> u8 {
    report.modes.iter().filter(|mode| mode.level == ModeLevel::Refused).map(|_| 1).sum()
}

#[cfg(test)]
mod tests;
