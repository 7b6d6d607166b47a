//! Helpers that test files share.
#![allow(dead_code, unused_imports, unused_macros, reason = "a test file uses what it needs")]

pub(crate) mod answer;
pub(crate) mod binaries;
pub(crate) mod caller;
pub(crate) mod cases;
pub(crate) mod dead_mounts;
pub(crate) mod fixture;
pub(crate) mod ipc;
pub(crate) mod kernel;
pub(crate) mod observed;
pub(crate) mod persona;
pub(crate) mod private_mounts;
pub(crate) mod problems;
pub(crate) mod processes;
pub(crate) mod random;
pub(crate) mod refused;
pub(crate) mod relative;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod running;
pub(crate) mod schema;
pub(crate) mod skip;
pub(crate) mod snapshot;
pub(crate) mod stage;
pub(crate) mod staged;
pub(crate) mod suite;
