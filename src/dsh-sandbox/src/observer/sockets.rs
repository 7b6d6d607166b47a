//! Sockets that want to connect: to where the command may reach, in its place.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::rc::Rc;

use dsh_facts::{Access, Layer};
use dsh_kernel::notification::{self, Notification};
use dsh_kernel::{connection, pidfd};
use nix::errno::Errno;
use nix::libc;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::attempt::{Target, int};
use super::caller::{Caller, Numbers};
use super::connect::{self, ADDRESS_MAX, Connection, Destination};
use super::worker::{Reply, Task};
use super::{Observer, gone};
use crate::denied::Refused;

impl Observer {
    pub(super) fn connect(&mut self, call: &Notification) -> Result<(), Errno> {
        let view = Rc::clone(&self.view);
        let caller = Caller { thread: call.thread, proc: view.proc.as_fd() };
        match self.try_connect(call, caller) {
            Ok(None) => Ok(()),
            Ok(Some(Outcome::GoOn)) => gone(notification::go_on(self.listener.as_fd(), call.id)),
            Ok(Some(Outcome::Done)) => {
                gone(notification::succeed(self.listener.as_fd(), call.id, 0))
            }
            Ok(Some(Outcome::Fails(errno))) => {
                gone(notification::fail(self.listener.as_fd(), call.id, errno as i32))
            }
            Err(warden_gone) => Err(warden_gone),
        }
    }

    /// Nothing where somebody else answers.
    fn try_connect(
        &mut self,
        call: &Notification,
        caller: Caller<'_>,
    ) -> Result<Option<Outcome>, Errno> {
        let fails = |errno: Errno| Ok(Some(Outcome::Fails(errno)));
        let [number, pointer, length, ..] = call.arguments;
        let length = match usize::try_from(int(length)) {
            Ok(length) if length <= ADDRESS_MAX => length,
            _ => return fails(Errno::EINVAL),
        };
        let Ok((identity, numbers)) = caller.status() else { return fails(Errno::EACCES) };
        let (thread, process) = (Pid::from_raw(call.thread), Pid::from_raw(numbers.process));
        let socket = pidfd::open_thread(thread, process)
            .and_then(|process| pidfd::copy_descriptor(process.as_fd(), int(number)));
        let socket = match socket {
            Ok(socket) => socket,
            Err(Errno::EBADF) => return fails(Errno::EBADF),
            Err(_) => return self.unreadable(call, &caller, numbers),
        };
        let domain = match connection::domain(socket.as_fd()) {
            Ok(domain) => domain,
            Err(errno) => return fails(errno),
        };
        let address = match caller.bytes(pointer, length) {
            Ok(address) => address,
            Err(Errno::EFAULT) => return fails(Errno::EFAULT),
            Err(_) => return self.unreadable(call, &caller, numbers),
        };
        if !notification::waits(self.listener.as_fd(), call.id) {
            return Ok(None);
        }
        let file = match connect::destination(domain, &address) {
            Destination::Path(path) => {
                let task = Task::Find(Target::from_here(path, true));
                match self.ask(call, &caller, task) {
                    Ok(Some((_, Reply::Found(_), file))) => file,
                    Ok(Some((_, Reply::Failed(errno), _))) => {
                        return fails(Errno::from_raw(errno));
                    }
                    Ok(Some((_, Reply::Denied { errno, layer, path }, _))) => {
                        let what = connection_refused(Some(path), None, errno, layer);
                        self.note(&caller, numbers, what)?;
                        return fails(Errno::from_raw(errno));
                    }
                    _ => return fails(Errno::EACCES),
                }
            }
            Destination::Abstract(name) if !self.plan.abstract_sockets => {
                let name = Some(format!("@{}", String::from_utf8_lossy(name)));
                let errno = Errno::EPERM;
                let what = connection_refused(None, name, errno as i32, Layer::Observer);
                self.note(&caller, numbers, what)?;
                return fails(errno);
            }
            Destination::Abstract(_) | Destination::Other => None,
        };
        if !self.plan.decides_sockets {
            return Ok(Some(Outcome::GoOn));
        }
        if domain != libc::AF_UNIX && connect::is_instant(socket.as_fd()) {
            return Ok(Some(match connection::connect(socket.as_fd(), &address) {
                Ok(()) => Outcome::Done,
                Err(errno) => Outcome::Fails(errno),
            }));
        }
        reap();
        let connection = Connection {
            listener: self.listener.as_fd(),
            id: call.id,
            caller,
            numbers,
            identity: &identity,
            pid_namespace: self.pid_namespace.as_ref().map(AsFd::as_fd),
            socket,
            address: &address,
            file,
        };
        match connection.start() {
            Ok(()) => Ok(None),
            Err(_) => fails(Errno::EACCES),
        }
    }

    /// A caller whose memory or descriptors we may not read connects to nothing.
    fn unreadable(
        &mut self,
        call: &Notification,
        caller: &Caller<'_>,
        numbers: Numbers,
    ) -> Result<Option<Outcome>, Errno> {
        if notification::waits(self.listener.as_fd(), call.id) {
            let address = Some("unreadable".to_owned());
            let errno = Errno::EACCES as i32;
            let what = connection_refused(None, address, errno, Layer::Observer);
            self.note(caller, numbers, what)?;
        }
        Ok(Some(Outcome::Fails(Errno::EACCES)))
    }
}

/// What becomes of a connect.
enum Outcome {
    GoOn,
    Done,
    Fails(Errno),
}

fn connection_refused(
    path: Option<OsString>,
    address: Option<String>,
    errno: i32,
    layer: Layer,
) -> Refused {
    Refused {
        operation: "connect".to_owned(),
        access: Some(Access::Connect),
        path,
        address,
        errno,
        layer,
    }
}

/// Takes note of processes that have ended.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
    }
}
