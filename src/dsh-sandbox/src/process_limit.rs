//! The bound on a command's processes and threads: which mechanism binds this caller.

use dsh_facts::Layer;

use crate::evidence;
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
    /// The step that would make the limit what was asked for, and why it is not.
    gap: Option<(Layer, &'static str)>,
}

impl ProcessLimit {
    /// What holds the limit; none where no limit is asked for. Else what would, and why not.
    pub(crate) fn standing(&self) -> Result<Option<Layer>, (Layer, &'static str)> {
        match self {
            Self { gap: Some(gap), .. } => Err(*gap),
            Self { pid_max: Some(_), .. } => Ok(Some(Layer::Proc)),
            Self { rlimit, .. } => Ok(rlimit.map(|_| Layer::Limits)),
        }
    }

    /// RLIMIT_NPROC never binds the global uid 0, and outside a user namespace of ours it counts
    /// the user's other processes too. A pid namespace has a `pid_max` of its own since Linux
    /// 6.14; before, writing it would change the host's.
    pub(crate) fn of(host: &Host, row: &Row, pids: Option<u32>) -> Self {
        let Some(pids) = pids else { return Self::default() };
        let gap = |step, reason| Self { gap: Some((step, reason)), ..Self::default() };
        if !host.caller.is_root() {
            if !row.user_namespace {
                let reason = "without a user namespace the limit would count all your processes";
                return gap(Layer::UserNamespace, reason);
            }
            // Our init and warden run in the namespace too.
            return Self { rlimit: Some(u64::from(pids) + 2), ..Self::default() };
        }
        if !row.pid_namespace {
            let reason = "limits never bind root, and there is no pid namespace with a pid_max";
            return gap(Layer::PidNamespace, reason);
        }
        if !evidence::at_least(&evidence::kernel_release(), 6, 14) {
            let reason = "limits never bind root, and only Linux 6.14 has a pid_max per namespace";
            return gap(Layer::PidNamespace, reason);
        }
        let too_few =
            (Layer::PidNamespace, "limits never bind root, and the smallest pid_max is 301");
        Self {
            pid_max: Some(pids.max(SMALLEST_PID_MAX)),
            gap: (pids < SMALLEST_PID_MAX).then_some(too_few),
            ..Self::default()
        }
    }
}
