//! Calls that the filter refuses: they get their errno, and a denial where they could be made outside.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::rc::Rc;

use dsh_facts::Layer;
use dsh_kernel::notification::{self, Notification};
use nix::errno::Errno;
use nix::libc;

use super::attempt::{self, Attempt, int};
use super::caller::Caller;
use super::worker::{Reply, Task};
use super::{Observer, gone};
use crate::denied::Refused;

impl Observer {
    /// Answers with the errno, and records what the caller may do outside.
    pub(super) fn refuse(
        &mut self,
        call: &Notification,
        name: &str,
        errno: i32,
        privileged: bool,
    ) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        if let Ok((identity, numbers)) = caller.status() {
            let outside = !privileged || (self.plan.administrator && identity.uid == 0);
            if outside && let Some(path) = self.refused_path(call, &caller, name) {
                let what = Refused {
                    operation: attempt::without_variant(name).to_owned(),
                    access: None,
                    path,
                    address: socket_kind(name, &call.arguments),
                    errno,
                    layer: Layer::Seccomp,
                };
                self.note(&caller, numbers, what)?;
            }
        }
        gone(notification::fail(self.listener.as_fd(), call.id, errno))
    }

    /// The file that a refused call is about, if it is about one; nothing where the call could not
    /// be made outside either, or nobody makes it any more.
    fn refused_path(
        &mut self,
        call: &Notification,
        caller: &Caller<'_>,
        name: &str,
    ) -> Option<Option<OsString>> {
        let waits = || notification::waits(self.listener.as_fd(), call.id);
        match Attempt::decode(name, &call.arguments, caller) {
            Err(_) => None,
            Ok(None) => waits().then_some(None),
            Ok(Some(attempt)) => match self.ask(call, caller, Task::Allow(attempt)) {
                Ok(Some((_, Reply::Denied { path, .. }, _))) => Some(Some(path)),
                _ => None,
            },
        }
    }
}

/// Family and type of a socket that was refused, for people.
fn socket_kind(name: &str, arguments: &[u64; 6]) -> Option<String> {
    if !matches!(name, "socket" | "socketpair") {
        return None;
    }
    let family = match int(arguments[0]) {
        libc::AF_UNIX => "unix".to_owned(),
        libc::AF_INET => "inet".to_owned(),
        libc::AF_INET6 => "inet6".to_owned(),
        libc::AF_NETLINK => "netlink".to_owned(),
        libc::AF_PACKET => "packet".to_owned(),
        libc::AF_VSOCK => "vsock".to_owned(),
        libc::AF_ALG => "alg".to_owned(),
        other => format!("family {other}"),
    };
    let kind = match int(arguments[1]) & 0xf {
        libc::SOCK_STREAM => "stream".to_owned(),
        libc::SOCK_DGRAM => "datagram".to_owned(),
        libc::SOCK_RAW => "raw".to_owned(),
        libc::SOCK_SEQPACKET => "seqpacket".to_owned(),
        other => format!("type {other}"),
    };
    let protocol = match (int(arguments[0]), int(arguments[2])) {
        (_, 0) => String::new(),
        (_, protocol) => format!(" protocol {protocol}"),
    };
    Some(format!("{family} {kind}{protocol}"))
}
