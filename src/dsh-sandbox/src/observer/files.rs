//! Calls that name a file: the kernel decides, and the observer tells. Only metadata it may have to
//! change itself.

use std::os::fd::AsFd;
use std::rc::Rc;

use dsh_facts::Access;
use dsh_kernel::notification::{self, Notification};
use nix::errno::Errno;
use nix::libc;

use super::attempt::{self, Attempt, Target, What, int};
use super::caller::Caller;
use super::connect::{ADDRESS_MAX, Destination, destination};
use super::worker::{Reply, Task};
use super::{Observer, glance, gone};
use crate::denied::Refused;

impl Observer {
    /// A call that names a file.
    pub(super) fn file(&mut self, call: &Notification, name: &str) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        let listener = self.listener.as_fd();
        let decoded = Attempt::decode(name, &call.arguments, &caller);
        let performs = self.plan.performs_metadata && attempt::is_change(name);
        let attempt = match decoded {
            Ok(Some(attempt)) => attempt,
            // Wrong for the kernel too, or unreadable: it will say so, or decide.
            _ if !performs => return gone(notification::go_on(listener, call.id)),
            Ok(None) => return gone(notification::fail(listener, call.id, libc::ENOENT)),
            Err(Errno::ESRCH) => return gone(notification::fail(listener, call.id, libc::EPERM)),
            Err(errno) => return gone(notification::fail(listener, call.id, errno as i32)),
        };
        if !performs && glance::is_free(&self.view, &caller, &attempt) {
            return gone(notification::go_on(listener, call.id));
        }
        let operation = attempt.what.operation();
        let task = if performs { Task::Perform(attempt) } else { Task::Judge(attempt) };
        let asked = self.ask(call, &caller, task);
        if let Ok(Some((numbers, Reply::Denied { errno, layer, path }, _))) = &asked {
            let what = Refused {
                operation: operation.to_owned(),
                access: Some(Access::Write),
                path: Some(path.clone()),
                address: None,
                errno: *errno,
                layer: *layer,
            };
            self.note(&caller, *numbers, what)?;
        }
        let listener = self.listener.as_fd();
        if !performs {
            return gone(notification::go_on(listener, call.id));
        }
        gone(match asked {
            Ok(Some((_, Reply::Done, _))) => notification::succeed(listener, call.id, 0),
            Ok(Some((_, Reply::Denied { errno, .. } | Reply::Failed(errno), _))) => {
                notification::fail(listener, call.id, errno)
            }
            _ => notification::fail(listener, call.id, libc::EPERM),
        })
    }

    /// A socket that wants a name in the file system.
    pub(super) fn bind(&mut self, call: &Notification) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        let length = int(call.arguments[2]);
        let address = usize::try_from(length)
            .ok()
            .filter(|length| *length <= ADDRESS_MAX)
            .and_then(|length| caller.bytes(call.arguments[1], length).ok())
            .unwrap_or_default();
        // An address of another family says nothing about files, whatever the socket is.
        if let Destination::Path(path) = destination(libc::AF_UNIX, &address) {
            let target = Target::from_here(path, false);
            let attempt = Attempt { what: What::Bind, target, second: None };
            if !glance::is_free(&self.view, &caller, &attempt)
                && let Ok(Some((numbers, Reply::Denied { errno, layer, path }, _))) =
                    self.ask(call, &caller, Task::Judge(attempt))
            {
                let what = Refused {
                    operation: "bind".to_owned(),
                    access: Some(Access::Write),
                    path: Some(path),
                    address: None,
                    errno,
                    layer,
                };
                self.note(&caller, numbers, what)?;
            }
        }
        gone(notification::go_on(self.listener.as_fd(), call.id))
    }
}
