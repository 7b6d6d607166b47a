//! From what a host offers to the report of it.

use std::path::{Path, PathBuf};

use dsh_facts::{
    EffectReport, HostReport, Layer, ModeLevel, ModeReport, Network, SandboxMode, StepReport,
    VERSION,
};
use nix::errno::Errno;

use crate::causes;
use crate::container::container;
use crate::coverage::Coverage;
use crate::effects;
use crate::error::{RequestError, errno_name};
use crate::evidence::Evidence;
use crate::facts::run_error;
use crate::host::Host;
use crate::ladder::Row;
use crate::process_limit::ProcessLimit;
use crate::rung::Rung;

/// What the host offers, why it refuses the rest, and what each mode comes to here, with the
/// current directory as the workspace.
///
/// No path outside the kernel's own file systems is looked up.
///
/// # Errors
///
/// [`RequestError::BuiltIn`] when a built-in rung does not parse.
pub fn host_report(host: &Host) -> Result<HostReport, RequestError> {
    let evidence = Evidence::gather();
    let steps = Host::STEPS.into_iter().map(|step| {
        let error = host.refusal(step);
        StepReport {
            step,
            offered: error.is_none(),
            abi: host.landlock.as_ref().ok().copied().filter(|_| step == Layer::Landlock),
            errno: error.map(|error| errno_name(Errno::from_raw(error.errno))),
            call: error.map(|error| error.step.clone()),
            needs: causes::needs(host, step),
            causes: causes::of(host, &evidence, step),
        }
    });
    let workspace = current_directory();
    let modes =
        SandboxMode::ALL.into_iter().map(|mode| mode_report(host, mode, workspace.as_deref()));
    Ok(HostReport {
        version: VERSION,
        kernel: evidence.kernel.clone(),
        uid: host.caller.uid,
        container: container().map(str::to_owned),
        steps: steps.collect(),
        modes: modes.collect::<Result<_, _>>()?,
    })
}

/// By the kernel's name for it: getcwd(3) may ask a file server where the directory is detached.
fn current_directory() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/cwd").ok()?;
    // A mode that writes refuses the whole host as its workspace.
    (path != Path::new("/")).then_some(path)
}

/// Both confined modes stand on the same row of the ladder, which no mode is asked for: a host on
/// which one of them runs and the other does not cannot be.
fn mode_report(
    host: &Host,
    mode: SandboxMode,
    workspace: Option<&Path>,
) -> Result<ModeReport, RequestError> {
    let rung = Rung::of(mode)?;
    let nothing = ModeReport {
        mode,
        level: ModeLevel::Unconfined,
        network: Some(rung.network),
        effects: Vec::new(),
        gaps: Vec::new(),
        error: None,
    };
    if !mode.confines() {
        return Ok(nothing);
    }
    let row = match Row::of(host) {
        Ok(row) => row,
        Err(error) => {
            let error = Some(run_error(&error));
            return Ok(ModeReport { level: ModeLevel::Refused, network: None, error, ..nothing });
        }
    };
    let writable: Vec<&Path> =
        workspace.into_iter().filter(|_| mode == SandboxMode::WorkspaceWrite).collect();
    let limit = ProcessLimit::of(host, &row, rung.pids);
    let coverage = Coverage::of(host, &row, mode, rung.network, &limit, row.observer, &writable);
    let effects = effects::list(&coverage);
    let gaps = effects::gaps(&effects);
    Ok(ModeReport {
        level: if gaps.is_empty() { ModeLevel::Full } else { ModeLevel::Partial },
        network: Some(if row.private_network { rung.network } else { Network::Off }),
        effects: effects.into_iter().map(effect_report).collect(),
        gaps,
        ..nothing
    })
}

fn effect_report(effect: effects::Effect) -> EffectReport {
    EffectReport {
        effect: effect.name.to_owned(),
        governed_by: effect.governed_by.into_iter().map(str::to_owned).collect(),
        needs: effect.gap.map(|(step, _)| step),
    }
}
