//! What dsh reports about a run and about a host: the sandbox modes with their order, how complete
//! the enforcement is, and the one shape in which every rung says so.
//!
//! Plain types with serde and a JSON Schema; no policy and no system calls. Names on the wire are
//! snake_case. Version 1 of the shape only grows, and its enums are open: a reader must expect
//! values that it does not know.

#![forbid(unsafe_code)]

mod bytes;
mod denial;
mod enforcement;
mod host_report;
mod mode;
mod network;
mod observe;
mod run;

pub use bytes::{base64_if_not_utf8, text};
pub use denial::{Access, DENIALS_MAX, Denial};
pub use enforcement::{Enforcement, Gap, Layer, LayerFact, Level, State};
pub use host_report::{Cause, EffectReport, HostReport, ModeLevel, ModeReport, StepReport};
pub use mode::{SandboxMode, UnknownMode};
pub use network::{Network, UnknownNetwork};
pub use observe::{Observe, UnknownObserve};
pub use run::{
    DenialSource, ErrorCode, Event, Exit, Facts, Outcome, RunError, StdioGrant, VERSION,
};
