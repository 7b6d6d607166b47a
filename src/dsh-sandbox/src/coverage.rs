//! What there is to govern a run with, and what would bring back the rest.

use std::collections::BTreeMap;
use std::path::Path;

use dsh_facts::{Cause, Layer, Network, SandboxMode};

use crate::causes;
use crate::evidence::{self, Evidence};
use crate::host::Host;
use crate::ladder::Row;
use crate::mountinfo;
use crate::process_limit::ProcessLimit;

/// What a run on this host, in this mode, has to govern with.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    pub(crate) mode: SandboxMode,
    pub(crate) own_mounts: bool,
    /// Whether nothing outside the writable roots could be written anyway, as in a nested run.
    pub(crate) others_read_only: bool,
    pub(crate) pid_namespace: bool,
    pub(crate) ipc_namespace: bool,
    pub(crate) private_network: bool,
    pub(crate) lock_by_sysctl: bool,
    /// Landlock's ABI; 0 without.
    pub(crate) landlock: u32,
    /// Whether there is an observer.
    pub(crate) observer: bool,
    pub(crate) wanted_network: Network,
    /// What limits the number of processes; none where no limit is asked for. Else the step that
    /// would, and why none does.
    pub(crate) process_limit: Result<Option<Layer>, (Layer, &'static str)>,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// What would bring back each step that is refused, or of no use without another.
    pub(crate) remedies: BTreeMap<Layer, String>,
}

impl Coverage {
    /// What the row of the ladder makes of the mode.
    pub(crate) fn of(
        host: &Host,
        row: &Row,
        mode: SandboxMode,
        wanted_network: Network,
        limit: &ProcessLimit,
        observer: bool,
        writable: &[&Path],
    ) -> Self {
        Self {
            mode,
            own_mounts: row.own_mounts,
            others_read_only: row.own_mounts || mountinfo::read_only_outside(writable),
            pid_namespace: row.pid_namespace,
            ipc_namespace: row.ipc_namespace,
            private_network: row.private_network,
            lock_by_sysctl: row.lock_by_sysctl,
            landlock: row.landlock.unwrap_or(0),
            observer,
            wanted_network,
            process_limit: limit.standing(),
            kernel: evidence::kernel_release(),
            remedies: remedies(host),
        }
    }

    /// What would bring back a step; nothing where it is in use.
    pub(crate) fn remedy(&self, step: Layer) -> String {
        self.remedies.get(&step).cloned().unwrap_or_default()
    }

    /// A Landlock that governs more.
    pub(crate) fn newer_landlock(&self, release: &str) -> String {
        format!("Linux {release} or later (this is {}), with Landlock enabled", self.kernel)
    }
}

fn remedies(host: &Host) -> BTreeMap<Layer, String> {
    let missing =
        |step: &Layer| host.refusal(*step).is_some() || causes::needs(host, *step).is_some();
    let missing: Vec<Layer> = Host::STEPS.into_iter().filter(missing).collect();
    if missing.is_empty() {
        return BTreeMap::new();
    }
    let evidence = Evidence::gather();
    let causes_of = |step| causes::of(host, &evidence, step);
    let remedy = |step| {
        let mut causes = causes::needs(host, step).map(causes_of).unwrap_or_default();
        causes.extend(causes_of(step));
        (step, Cause::remedies(&causes))
    };
    missing.into_iter().map(remedy).collect()
}
