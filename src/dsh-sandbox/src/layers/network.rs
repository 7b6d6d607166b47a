//! The private network: `lo` up, every port bindable.

use dsh_facts::Layer;

use crate::error::{LayerError, Step};
use crate::plan::PrivateNetwork;

const LOW_PORTS: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Sets up the network namespace that the process has just entered.
///
/// Returns what a command will miss, if anything: a host whose /proc/sys is read-only keeps ports
/// below 1024 from an unprivileged command, which is no hole.
pub(crate) fn set_up(plan: PrivateNetwork) -> Result<Option<String>, LayerError> {
    if !plan.loopback {
        return Ok(None);
    }
    dsh_kernel::loopback::bring_up().step(Layer::Network, "bring lo up")?;
    // This sysctl belongs to the network namespace (ip-sysctl.rst), which is ours.
    Ok(std::fs::write(LOW_PORTS, "0")
        .err()
        .map(|error| format!("ports below 1024 cannot be bound: {LOW_PORTS}: {error}")))
}
