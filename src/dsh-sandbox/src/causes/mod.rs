//! Why a host refuses a step, and what removes the cause.
//!
//! Every cause that the kernel's state shows is listed, not only the one that struck first: filters,
//! settings and security modules stand one behind the other. Where the state shows none, the
//! possible ones are listed, each with how to tell.

mod kernel;
mod namespaces;

use dsh_facts::{Cause, Layer};
use nix::errno::Errno;

use crate::error::LayerError;
use crate::evidence::Evidence;
use crate::host::Host;

/// What allows a call that a filter refuses.
const UNFILTERED: &str = "Docker and Podman: --security-opt seccomp=unconfined, or a profile that \
     allows unshare, clone, mount and Landlock's calls; Kubernetes: \
     securityContext.seccompProfile.type: Unconfined; systemd: RestrictNamespaces=no and no \
     SystemCallFilter=; in another sandbox: run dsh-run outside it";

/// Why the host refuses a step; nothing for one that it offers, or that only [`needs`] another.
pub(crate) fn of(host: &Host, evidence: &Evidence, step: Layer) -> Vec<Cause> {
    let Some(error) = host.refusal(step) else { return Vec::new() };
    let refusal = Refusal { host, evidence, error };
    match step {
        Layer::Landlock => refusal.landlock(),
        Layer::Seccomp => refusal.seccomp(),
        Layer::Observer => refusal.observer(),
        Layer::NamespaceLock => refusal.namespace_lock(),
        _ => refusal.namespaces(step),
    }
}

/// The step that this one builds on, if that is refused.
pub(crate) fn needs(host: &Host, step: Layer) -> Option<Layer> {
    let refused = |step| host.refusal(step).is_some().then_some(step);
    match step {
        Layer::Mount => refused(Layer::UserNamespace)
            .filter(|_| host.refusal(step) == host.refusal(Layer::UserNamespace)),
        // Only with mounts of its own has a command use for these.
        Layer::PidNamespace | Layer::IpcNamespace | Layer::Network => {
            needs(host, Layer::Mount).or(refused(Layer::Mount))
        }
        Layer::NamespaceLock => refused(Layer::UserNamespace),
        _ => None,
    }
}

/// A step that was refused, and what is known about it.
struct Refusal<'a> {
    host: &'a Host,
    evidence: &'a Evidence,
    error: &'a LayerError,
}

impl Refusal<'_> {
    fn is(&self, errnos: &[Errno]) -> bool {
        errnos.iter().any(|errno| *errno as i32 == self.error.errno)
    }
}

fn known(cause: impl Into<String>, remedy: impl Into<String>) -> Cause {
    Cause { cause: cause.into(), remedy: remedy.into(), tell: None }
}

fn possible(cause: impl Into<String>, remedy: impl Into<String>, tell: impl Into<String>) -> Cause {
    Cause { cause: cause.into(), remedy: remedy.into(), tell: Some(tell.into()) }
}

#[cfg(test)]
mod tests;
