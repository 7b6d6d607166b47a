//! From a plan and what came of it to the facts of a run.

use std::path::Path;

use dsh_facts::{
    DenialSource, Enforcement, ErrorCode, Exit, Facts, LayerFact, Network, Outcome, RunError,
    StdioGrant, VERSION, base64_if_not_utf8, text,
};
use nix::errno::Errno;

use crate::denied::Denials;
use crate::error::{LayerError, SandboxError, errno_name};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::request::Request;

/// How complete the enforcement of a plan is, with these layers applied; none where nothing is
/// confined.
#[must_use]
pub fn enforcement(plan: &Plan, layers: &[LayerFact]) -> Option<Enforcement> {
    plan.mode.confines().then(|| Enforcement::new(layers.to_vec(), plan.gaps.clone()))
}

/// The facts of a command that ran.
#[must_use]
pub fn ran(plan: &Plan, layers: &[LayerFact], denials: &Denials, exit: Exit) -> Facts {
    let observer = plan.command.confinement.as_ref().and_then(|one| one.observer.as_ref());
    let failed = exit.code != Some(0);
    Facts {
        version: VERSION,
        outcome: Outcome::Ran,
        error: None,
        mode: plan.mode,
        workspace: text(plan.workspace.path()),
        workspace_base64: base64_if_not_utf8(plan.workspace.path()),
        writable: plan.writable.iter().map(|root| text(root.path())).collect(),
        profile: plan.profile.clone(),
        hidden: plan.hidden.iter().map(text).collect(),
        protected: plan.protected.iter().map(text).collect(),
        missing: plan.missing.iter().map(text).collect(),
        network: plan.network,
        enforcement: enforcement(plan, layers),
        exit: Some(exit),
        // Nothing is denied where nothing is confined, and nothing is seen without an observer.
        denied: match (plan.mode.confines(), observer) {
            (false, _) => Some(false),
            (true, None) => None,
            (true, Some(_)) => Some(failed && !denials.listed.is_empty()),
        },
        denial_source: match observer {
            Some(_) => DenialSource::Observed,
            None => DenialSource::Unavailable,
        },
        observe: observer.map(|observer| observer.level),
        denials: denials.listed.clone(),
        denials_dropped: denials.dropped,
        env_dropped: plan.environment_dropped.iter().map(text).collect(),
        stdio: plan
            .command
            .stdio
            .grants()
            .map(|(descriptor, path)| StdioGrant {
                descriptor,
                path: text(path),
                path_base64: base64_if_not_utf8(path),
            })
            .collect(),
    }
}

/// The facts of a command that ran, and of which nothing is known since its own processes, or those
/// of the sandbox around it, failed. All of them are gone.
#[must_use]
pub fn lost(plan: &Plan, layers: &[LayerFact], denials: &Denials, error: &SandboxError) -> Facts {
    let exit = Exit { started: true, code: None, signal: None, timed_out: false, aborted: false };
    Facts { error: Some(run_error(error)), ..ran(plan, layers, denials, exit) }
}

/// The facts of a command that did not run.
#[must_use]
pub fn refused(request: &Request, error: RunError) -> Facts {
    let workspace = request.workspace.clone().or_else(|| std::env::current_dir().ok());
    let workspace = workspace.as_deref().unwrap_or(Path::new(""));
    Facts {
        version: VERSION,
        outcome: Outcome::Refused,
        error: Some(error),
        mode: request.mode(),
        workspace: text(workspace),
        workspace_base64: base64_if_not_utf8(workspace),
        writable: Vec::new(),
        profile: request.profile.as_ref().map(|profile| profile.name.clone()),
        hidden: Vec::new(),
        protected: Vec::new(),
        missing: Vec::new(),
        network: Policy::of(request).map_or(Network::Off, |policy| policy.network),
        enforcement: None,
        exit: None,
        denied: None,
        denial_source: DenialSource::Unavailable,
        observe: None,
        denials: Vec::new(),
        denials_dropped: 0,
        env_dropped: Vec::new(),
        stdio: Vec::new(),
    }
}

/// An error as the facts have it.
#[must_use]
pub fn run_error(error: &SandboxError) -> RunError {
    let (layer, step, errno) = match layer_error(error) {
        Some(error) => (
            Some(error.layer),
            Some(error.step.clone()),
            Some(errno_name(Errno::from_raw(error.errno))),
        ),
        None => (None, None, None),
    };
    RunError {
        code: code(error),
        layer,
        step,
        errno,
        message: error.to_string(),
        remedy: match error {
            SandboxError::Unavailable { remedy, .. } => Some((*remedy).to_owned()),
            SandboxError::Layer(_) | SandboxError::CarveOuts(_) => {
                Some("dsh-run doctor".to_owned())
            }
            _ => None,
        },
    }
}

fn layer_error(error: &SandboxError) -> Option<&LayerError> {
    match error {
        SandboxError::Layer(error)
        | SandboxError::CarveOuts(error)
        | SandboxError::ObserverFailed(error)
        | SandboxError::Unavailable { first: error, .. } => Some(error),
        _ => None,
    }
}

fn code(error: &SandboxError) -> ErrorCode {
    match error {
        SandboxError::Request(_) => ErrorCode::InvalidRequest,
        SandboxError::Partial { .. } => ErrorCode::PartialEnforcement,
        SandboxError::RunnerFailed | SandboxError::ObserverFailed(_) => ErrorCode::RunnerFailed,
        SandboxError::Layer(_)
        | SandboxError::CarveOuts(_)
        | SandboxError::Unavailable { .. }
        | SandboxError::Warden { .. }
        | SandboxError::Threads => ErrorCode::SandboxUnavailable,
    }
}
