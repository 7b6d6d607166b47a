//! The bound on a command's processes and threads: which mechanism binds this caller.

use crate::host::Host;
use crate::ladder::Row;

/// The smallest `kernel.pid_max` that Linux takes (RESERVED_PIDS + 1).
const SMALLEST_PID_MAX: u32 = 301;

/// How the number of processes is limited, and whether it is.
#[derive(Default)]
pub(crate) struct ProcessLimit {
    /// `RLIMIT_NPROC`.
    pub(crate) rlimit: Option<u64>,
    /// `kernel.pid_max` of the pid namespace.
    pub(crate) pid_max: Option<u32>,
    /// Why the limit is not what was asked for.
    pub(crate) gap: Option<&'static str>,
}

impl ProcessLimit {
    /// RLIMIT_NPROC never binds the global uid 0, and outside a user namespace of ours it counts
    /// the user's other processes too. A pid namespace has a `pid_max` of its own since Linux
    /// 6.14; before, writing it would change the host's.
    pub(crate) fn of(host: &Host, row: &Row, pids: Option<u32>) -> Self {
        let Some(pids) = pids else { return Self::default() };
        if !host.caller.is_root() {
            return if row.user_namespace {
                // Our init and warden run in the namespace too.
                Self { rlimit: Some(u64::from(pids) + 2), ..Self::default() }
            } else {
                Self {
                    gap: Some("without a user namespace the limit would count all your processes"),
                    ..Self::default()
                }
            };
        }
        let gap = |reason| Self { gap: Some(reason), ..Self::default() };
        if !row.pid_namespace {
            return gap("limits never bind root, and there is no pid namespace with a pid_max");
        }
        if !kernel_at_least(6, 14) {
            return gap("limits never bind root, and only Linux 6.14 has a pid_max per namespace");
        }
        Self {
            pid_max: Some(pids.max(SMALLEST_PID_MAX)),
            gap: (pids < SMALLEST_PID_MAX)
                .then_some("limits never bind root, and the smallest pid_max is 301"),
            ..Self::default()
        }
    }
}

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().ok());
    let running = (numbers.next().flatten(), numbers.next().flatten());
    matches!(running, (Some(a), Some(b)) if (a, b) >= (major, minor))
}
