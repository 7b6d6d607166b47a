//! Confines a command by namespaces, Landlock, seccomp and capabilities, and reports how
//! completely.
//!
//! Data flows one way. A [`Request`] and what the [`Host`] offers [`resolve`] into a [`Plan`], a
//! plain value; a warden executes it and decides nothing: it makes the world's namespaces once, and
//! for each command an init that applies the mounts and a process that puts the rest on itself and
//! executes. [`Run::start`] does all of it for one command; [`Facts`](dsh_facts::Facts) say what
//! came of it.
//!
//! A layer that the mode requires and that does not apply means that the command does not run.

#![forbid(unsafe_code)]

mod carve_outs;
mod causes;
mod command;
mod container;
mod coverage;
mod denied;
mod dispatch;
mod effects;
mod environment;
mod error;
mod evidence;
mod facts;
mod governing_file;
mod host;
mod host_report;
mod image;
mod init;
mod ladder;
mod layers;
mod mountinfo;
mod observation;
mod observer;
mod other_names;
mod plan;
mod policy;
mod probe;
mod process_limit;
mod profile;
mod protocol;
mod pump;
mod refused_calls;
mod request;
mod resolve;
mod root;
mod roots;
mod run;
mod rung;
mod scratch_size;
mod seccomp_program;
mod seccomp_rules;
mod stdio;
mod survivors;
mod syscalls;
mod traps;
mod walk;
mod warden;
mod warden_handle;
mod way;

pub use carve_outs::{CarveOut, Treatment};
pub use denied::{Denials, Denied, Refused};
pub use dispatch::dispatch;
pub use dsh_kernel::descriptors::duplicate as duplicate_descriptor;
pub use error::{LayerError, RequestError, SandboxError};
pub use facts::{enforcement, lost, ran, refused, run_error};
pub use governing_file::check_governing_file;
pub use host::{Caller, Host};
pub use host_report::host_report;
pub use layers::Applied;
pub use layers::descriptors::SCRIPT as SCRIPT_DESCRIPTOR;
pub use plan::{
    CommandPlan, Confinement, IdMap, LandlockPlan, MountPlan, ObserverPlan, Plan, PrivateNetwork,
    RefusedCall, Workdir, WorldPlan, WritableRoot,
};
pub use probe::probe;
pub use profile::{Place, Profile, ProfileError, profile_directory, profile_names};
pub use protocol::Event;
pub use refused_calls::{RefusedCalls, refused_calls};
pub use request::{EnvironmentRequest, Request};
pub use resolve::resolve;
pub use root::Root;
pub use run::Run;
pub use scratch_size::{NoSize, ScratchSize};
pub use seccomp_rules::Alternative;
pub use stdio::{Stdio, StdioPlan};
pub use warden_handle::{Warden, WardenProgram};
