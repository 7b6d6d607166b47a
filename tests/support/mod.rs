//! Helpers that test files share.
#![allow(dead_code, reason = "a test file uses what it needs")]

pub(crate) mod binaries;
pub(crate) mod ipc;
pub(crate) mod persona;
pub(crate) mod running;
pub(crate) mod skip;
pub(crate) mod snapshot;
