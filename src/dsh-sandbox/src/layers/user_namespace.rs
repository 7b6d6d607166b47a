//! The user namespace, and with it the namespaces that a world shares: IPC, UTS and network.

use std::fs;

use dsh_facts::Layer;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::Pid;

use crate::error::{LayerError, Step};
use crate::plan::{IdMap, WorldPlan};

const LAYER: Layer = Layer::UserNamespace;

/// Enters the namespaces of a world.
///
/// `map_from_outside` has the process outside write a root caller's map: one that has entered a
/// user namespace has lost the capabilities that this takes in the namespace around it.
pub(crate) fn enter(
    plan: &WorldPlan,
    map_from_outside: impl FnOnce() -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let mut flags = CloneFlags::empty();
    flags.set(CloneFlags::CLONE_NEWUSER, plan.user_namespace.is_some());
    flags.set(CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS, plan.ipc_namespace);
    flags.set(CloneFlags::CLONE_NEWNET, plan.network.is_some());
    if flags.is_empty() {
        return Ok(());
    }
    unshare(flags).step(first_layer(plan), "unshare")?;
    match &plan.user_namespace {
        None => Ok(()),
        Some(IdMap::Own { uid, gid }) => {
            // Without this an ordinary user may not write gid_map (Linux 3.19).
            write("/proc/self/setgroups", "deny")?;
            write("/proc/self/uid_map", &format!("{uid} {uid} 1\n"))?;
            write("/proc/self/gid_map", &format!("{gid} {gid} 1\n"))
        }
        Some(IdMap::Whole { .. }) => map_from_outside(),
    }
}

/// Writes a root caller's map for a process that waits for it.
pub(crate) fn map(pid: Pid, map: &IdMap) -> Result<(), LayerError> {
    match map {
        IdMap::Own { .. } => Ok(()),
        IdMap::Whole { uid_map, gid_map } => {
            write(&format!("/proc/{pid}/uid_map"), uid_map)?;
            write(&format!("/proc/{pid}/gid_map"), gid_map)
        }
    }
}

fn write(path: &str, text: &str) -> Result<(), LayerError> {
    fs::write(path, text).step(LAYER, "write").map_err(|error| error.at(path))
}

/// One unshare makes them all; its errno is put down to the first.
fn first_layer(plan: &WorldPlan) -> Layer {
    if plan.user_namespace.is_some() {
        LAYER
    } else if plan.network.is_some() {
        Layer::Network
    } else {
        Layer::IpcNamespace
    }
}
