//! Starting one command: the best row of the ladder first, the probed one where that fails.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use dsh_facts::LayerFact;
use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::carve_outs;
use crate::denied::Denials;
use crate::error::{RequestError, SandboxError};
use crate::host::Host;
use crate::plan::{Plan, Workdir};
use crate::policy::Policy;
use crate::probe::probe;
use crate::protocol::{CommandId, Event};
use crate::request::Request;
use crate::resolve::{resolve_policy, resolve_world};
use crate::warden_handle::{Warden, WardenProgram};

/// How long the layers may take to be applied.
const PATIENCE: Duration = Duration::from_secs(30);

/// A confined command that is about to be executed, or runs.
#[derive(Debug)]
pub struct Run {
    warden: Warden,
    id: CommandId,
    plan: Plan,
    layers: Vec<LayerFact>,
    denials: Denials,
    /// The command's process group as the caller sees it.
    process_group: i32,
}

impl Run {
    /// Confines and starts the command of a request.
    ///
    /// `script` is one more descriptor that the command inherits, as [`crate::SCRIPT_DESCRIPTOR`].
    ///
    /// # Errors
    ///
    /// Any [`SandboxError`]; nothing was executed then.
    pub fn start(
        request: &Request,
        program: &WardenProgram,
        descriptors: [BorrowedFd<'_>; 3],
        script: Option<BorrowedFd<'_>>,
    ) -> Result<Self, SandboxError> {
        let policy = Policy::of(request)?;
        let hopeful = Host::optimistic();
        let first = attempt(request, &policy, &hopeful, program, descriptors, script);
        let may_be_the_host = match &first {
            // Which gaps there are depends on the host, and a refusal for them names them all.
            Err(SandboxError::Partial { .. }) => true,
            Err(SandboxError::Layer(error) | SandboxError::CarveOuts(error)) => {
                error.means_absent()
            }
            _ => false,
        };
        if !may_be_the_host {
            return first;
        }
        let host = probe(program)?;
        if host == hopeful {
            // Each step alone works, so the failure is no trait of the host.
            return first;
        }
        attempt(request, &policy, &host, program, descriptors, script)
    }

    /// The plan that is being carried out.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What every layer did.
    #[must_use]
    pub fn layers(&self) -> &[LayerFact] {
        &self.layers
    }

    /// What was denied so far; their counts are known at the end.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// The command's process group, in the caller's pid namespace.
    #[must_use]
    pub fn process_group(&self) -> i32 {
        self.process_group
    }

    /// Waits for news; none after `timeout`.
    ///
    /// # Errors
    ///
    /// [`SandboxError::RunnerFailed`] when the warden is gone.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, SandboxError> {
        let event = self.warden.next(timeout)?.map(|(_, event)| event);
        match &event {
            Some(Event::Uncovered(place)) => self.plan.gaps.push(carve_outs::uncovered(place)),
            Some(Event::Denied(denied)) => self.denials.add((**denied).clone()),
            Some(Event::DenialCounts(counts, dropped)) => self.denials.count(counts, *dropped),
            _ => {}
        }
        Ok(event)
    }

    /// Sends a signal to the command's process group.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when the order cannot be given.
    pub fn signal(&mut self, signal: Signal) -> Result<(), SandboxError> {
        self.warden.signal(self.id, signal)
    }

    /// Ends everything that belongs to the command, at once.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Warden`] when the order cannot be given.
    pub fn kill(&mut self) -> Result<(), SandboxError> {
        self.warden.kill(self.id)
    }
}

impl std::os::fd::AsFd for Run {
    /// Readable when there is news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.warden.as_fd()
    }
}

fn attempt(
    request: &Request,
    policy: &Policy,
    host: &Host,
    program: &WardenProgram,
    descriptors: [BorrowedFd<'_>; 3],
    script: Option<BorrowedFd<'_>>,
) -> Result<Run, SandboxError> {
    // The warden makes the world while the rest of the plan is resolved.
    let mut warden = Warden::start(program, &resolve_world(policy, host)?)?;
    let mut plan = resolve_policy(request, policy, host, Some(program.path()), Some(descriptors))?;
    plan.command.foreground = request.foreground;
    let id = warden.run(&plan.command, descriptors, script)?;
    let mut layers = plan.absent.clone();
    loop {
        let Some((_, event)) = warden.next(Some(PATIENCE))? else {
            return Err(SandboxError::warden("apply the layers")(Errno::ETIMEDOUT));
        };
        match event {
            Event::Prepared(prepared) => {
                layers.extend(warden.layers().iter().cloned().map(LayerFact::from));
                layers.extend(prepared.into_iter().map(LayerFact::from));
            }
            Event::Confined { pid, layers: own } => {
                layers.extend(own.into_iter().map(LayerFact::from));
                let denials = Denials::default();
                return Ok(Run { warden, id, plan, layers, denials, process_group: pid });
            }
            Event::Failed(error) => return Err(error.into()),
            Event::WorkdirUnseen(errno) => {
                let path = match plan.command.workdir {
                    Workdir::Same(root) => root.path,
                    Workdir::Named(path) => path,
                };
                return Err(RequestError::Workdir { path: path.into(), errno }.into());
            }
            _ => return Err(SandboxError::RunnerFailed),
        }
    }
}
