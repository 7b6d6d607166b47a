//! The command's own process: what it puts on itself, in order, and exec.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use dsh_facts::Layer;
use dsh_kernel::process::exit_now;
use nix::errno::Errno;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, getpid, setpgid, tcsetpgrp};

use crate::error::{LayerError, Step, errno_of};
use crate::image::{self, HandedOver};
use crate::layers::{Applied, capabilities, descriptors, enforce, landlock, limits, seccomp};
use crate::plan::{CommandPlan, Confinement};
use crate::protocol::{self, Event};

/// Becomes the command. Reports over `status`, which exec closes.
///
/// With an `image`, executes that first; see [`crate::image`].
pub(crate) fn become_command(
    plan: &CommandPlan,
    packed: BorrowedFd<'_>,
    image: Option<&OwnedFd>,
    stdio: &[OwnedFd; 3],
    script: Option<&OwnedFd>,
    status: BorrowedFd<'_>,
) -> ! {
    if let Err(error) = descriptors::install(stdio) {
        report(status, &Event::Failed(error));
        exit_now(0);
    }
    if let Some(image) = image {
        let error = image::execute(image.as_fd(), packed, status, script.map(AsFd::as_fd));
        report(status, &Event::Failed(error));
        exit_now(0);
    }
    finish(plan, script, status)
}

/// Goes on in the image, with what it was executed with.
pub(crate) fn resume(handed: HandedOver) -> ! {
    let status = handed.status.as_fd();
    match protocol::unpack::<CommandPlan>(handed.plan).step(Layer::Descriptors, "unpack") {
        Ok(plan) => finish(&plan, handed.script.as_ref(), status),
        Err(error) => report(status, &Event::Failed(error)),
    }
    exit_now(0)
}

fn finish(plan: &CommandPlan, script: Option<&OwnedFd>, status: BorrowedFd<'_>) -> ! {
    match prepare(plan, script) {
        Err(error) => report(status, &Event::Failed(error)),
        Ok((layers, listener)) => {
            // The warden puts in the pid as it sees it, from the message's credentials.
            let event = Event::Confined { pid: 0, layers };
            let listener: Vec<BorrowedFd<'_>> = listener.iter().map(AsFd::as_fd).collect();
            let _ = protocol::send(status, &event, &listener);
            if let Some((program, arguments)) = plan.command.split_first() {
                let error = Command::new(program)
                    .args(arguments)
                    .env_clear()
                    .envs(plan.environment.iter().map(|(name, value)| (name, value)))
                    .exec();
                report(status, &Event::NotExecuted(errno_of(&error) as i32));
            }
        }
    }
    exit_now(0)
}

fn report(status: BorrowedFd<'_>, event: &Event) {
    // Nobody left to tell: the warden is dead, and so will this process be.
    let _ = protocol::send(status, event, &[]);
}

/// The layers that are on, and where the observer's calls arrive.
type Prepared = (Vec<Applied>, Option<OwnedFd>);

fn prepare(plan: &CommandPlan, script: Option<&OwnedFd>) -> Result<Prepared, LayerError> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    own_process_group(plan.foreground.then(|| input.as_fd()))?;
    let mut layers = Vec::new();
    let grants: Vec<BorrowedFd<'_>> = plan
        .stdio
        .descriptors
        .iter()
        .zip([input.as_fd(), output.as_fd(), error.as_fd()])
        .filter(|(kind, descriptor)| kind.may_be_written(descriptor))
        .map(|(_, descriptor)| descriptor)
        .collect();
    umask(Mode::from_bits_truncate(plan.umask));
    if let Some(confinement) = &plan.confinement {
        confine(confinement, &grants, &mut layers)?;
    }
    layers.push(enforce(Layer::Descriptors, || descriptors::close_rest_on_exec(script))?);
    dsh_kernel::signals::reset().step(Layer::Descriptors, "reset signals")?;
    let mut listener = None;
    match &plan.confinement {
        Some(Confinement { filter, observer: None, .. }) => {
            layers.push(enforce(Layer::Seccomp, || seccomp::load(filter))?);
        }
        Some(Confinement { filter, .. }) => {
            layers.push(enforce(Layer::Seccomp, || {
                listener = Some(seccomp::load_with_listener(filter)?);
                Ok(())
            })?);
            layers.push(Applied::plainly(Layer::Observer));
        }
        None => layers.clear(),
    }
    Ok((layers, listener))
}

fn confine(
    confinement: &Confinement,
    grants: &[BorrowedFd<'_>],
    layers: &mut Vec<Applied>,
) -> Result<(), LayerError> {
    layers.push(enforce(Layer::Limits, || limits::set(confinement.processes))?);
    layers.push(enforce(Layer::Capabilities, || {
        set_no_new_privs().step(Layer::Capabilities, "no_new_privs")?;
        capabilities::keep(&confinement.capabilities)
    })?);
    if let Some(plan) = &confinement.landlock {
        let mut fact = enforce(Layer::Landlock, || landlock::restrict(plan, grants))?;
        fact.abi = Some(plan.abi);
        layers.push(fact);
    }
    Ok(())
}

/// A process group of its own, so that a signal reaches all of the command and nothing else; in the
/// foreground of `terminal` when the caller gives that up.
fn own_process_group(terminal: Option<BorrowedFd<'_>>) -> Result<(), LayerError> {
    let step = |errno: Errno, step| LayerError::new(Layer::Descriptors, step, errno);
    setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(|errno| step(errno, "setpgid"))?;
    if let Some(terminal) = terminal {
        // A background group that changes the foreground is stopped by SIGTTOU, tcsetpgrp(3).
        let ttou = SigSet::from(Signal::SIGTTOU);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ttou), None)
            .map_err(|errno| step(errno, "sigprocmask"))?;
        tcsetpgrp(terminal, getpid()).map_err(|errno| step(errno, "tcsetpgrp"))?;
    }
    Ok(())
}
