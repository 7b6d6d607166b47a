//! A process that looks things up with a caller's ids, and may be kept waiting by a file system. The
//! observer waits for it no longer than a deadline, and then ends it.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use caps::{CapSet, Capability, CapsHashSet};
use dsh_facts::Layer;
use dsh_kernel::process::{Fork, exit_now, fork};
use dsh_kernel::{access, descriptors, node, pidfd, socket};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl::{set_dumpable, set_keepcaps, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{AccessFlags, Gid, Pid, Uid, setgroups, setresgid, setresuid};
use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Target, What};
use super::caller::{Caller, Identity, Numbers};
use super::judge::Judge;
use super::locate::locate;
use super::ownership::may_change;
use super::perform::perform;
use super::view::View;
use crate::plan::ObserverPlan;
use crate::protocol;

/// How long one question may take. Look-ups on a live file system take microseconds, and on a busy
/// machine the turn to make them may take seconds to come.
const DEADLINE: Duration = Duration::from_secs(5);

/// What the observer wants to know, or to have done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) thread: i32,
    pub(super) numbers: Numbers,
    pub(super) task: Task,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Is it denied?
    Judge(Attempt),
    /// It is refused whatever it is about: could it be done outside?
    Allow(Attempt),
    /// Change the metadata, where they may be changed.
    Perform(Attempt),
    /// Find a unix socket, and tell whether it may be reached.
    Find(Target),
}

/// What comes of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// Nothing is denied.
    Free,
    /// This sandbox refuses.
    Denied { errno: i32, layer: Layer, path: OsString },
    /// It is done.
    Done,
    /// It fails, here as outside.
    Failed(i32),
    /// The socket, in the descriptor that comes along.
    Found(OsString),
}

/// A running worker, for one identity.
pub(super) struct Worker {
    identity: Identity,
    process: Pid,
    handle: OwnedFd,
    socket: OwnedFd,
}

impl Worker {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// That of making a process.
    pub(super) fn start(
        identity: &Identity,
        view: &View,
        plan: &ObserverPlan,
    ) -> Result<Self, Errno> {
        let (here, there) = socket::pair()?;
        match fork(CloneFlags::empty())? {
            Fork::Parent { child, pidfd } => {
                Ok(Self { identity: identity.clone(), process: child, handle: pidfd, socket: here })
            }
            Fork::Child => {
                let kept = [there.as_fd(), view.proc.as_fd(), view.host.as_fd()];
                let ready = set_pdeathsig(Signal::SIGKILL)
                    .and_then(|()| descriptors::close_all_but(&kept))
                    .and_then(|()| take_identity(identity, &[Capability::CAP_SYS_PTRACE]));
                std::mem::forget(here); // closed with the rest
                if ready.is_ok() {
                    work(identity, view, plan, there.as_fd());
                }
                exit_now(0)
            }
        }
    }

    /// Whether it asks as this identity.
    pub(super) fn is_for(&self, identity: &Identity) -> bool {
        self.identity == *identity
    }

    /// Asks, and waits for the answer until the deadline.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`; `EPIPE` when the worker is gone. It is of no more use then.
    pub(super) fn ask(&self, question: &Question) -> Result<(Reply, Option<OwnedFd>), Errno> {
        protocol::send(self.socket.as_fd(), question, &[])?;
        let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(DEADLINE).unwrap_or(PollTimeout::MAX);
        if poll(&mut ready, timeout)? == 0 {
            return Err(Errno::ETIMEDOUT);
        }
        let received = protocol::receive::<Reply>(self.socket.as_fd())?.ok_or(Errno::EPIPE)?;
        Ok((received.message, received.descriptors.into_iter().next()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that waits for a silent file server dies when it can; nobody waits for it.
        let _ = pidfd::send_signal(self.handle.as_fd(), Signal::SIGKILL);
        let _ = waitpid(self.process, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
    }
}

/// Becomes the caller, as far as checks of access go, for good; with `more` capabilities that play
/// no part in them.
pub(super) fn take_identity(identity: &Identity, more: &[Capability]) -> Result<(), Errno> {
    let groups: Vec<Gid> = identity.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    set_keepcaps(true)?;
    let mut current = nix::unistd::getgroups()?;
    let mut wanted = groups.clone();
    current.sort_unstable_by_key(|gid| gid.as_raw());
    wanted.sort_unstable_by_key(|gid| gid.as_raw());
    if current != wanted {
        // Without the right to, a process has the groups of its caller already.
        setgroups(&groups)?;
    }
    if nix::unistd::getegid() != gid {
        setresgid(gid, gid, gid)?;
    }
    if nix::unistd::geteuid() != uid {
        setresuid(uid, uid, uid)?;
    }
    let permitted = caps::read(None, CapSet::Permitted).map_err(|_| Errno::last())?;
    let effective: CapsHashSet =
        permitted.into_iter().filter(|one| identity.has(*one) || more.contains(one)).collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &effective).map_err(|_| Errno::last())?;
    }
    set_dumpable(false)
}

fn work(identity: &Identity, view: &View, plan: &ObserverPlan, socket: BorrowedFd<'_>) {
    while let Ok(Some(received)) = protocol::receive::<Question>(socket) {
        let Question { thread, numbers, task } = received.message;
        let caller = Caller { thread, proc: view.proc.as_fd() };
        let judge =
            Judge { view, caller: &caller, numbers, identity, administrator: plan.administrator };
        let (reply, file) = match task {
            Task::Judge(attempt) => (judged(&judge, &attempt), None),
            Task::Allow(attempt) => (allowed(&judge, &attempt), None),
            Task::Perform(attempt) => (performed(&judge, &attempt), None),
            Task::Find(target) => find(&judge, plan, &target),
        };
        let descriptors: Vec<BorrowedFd<'_>> = file.iter().map(AsFd::as_fd).collect();
        if protocol::send(socket, &reply, &descriptors).is_err() {
            return;
        }
    }
}

fn judged(judge: &Judge<'_>, attempt: &Attempt) -> Reply {
    match judge.judge(attempt) {
        Ok(Some((refusal, location))) => Reply::Denied {
            errno: refusal.errno as i32,
            layer: refusal.layer,
            path: location.path(|file| judge.view.name_of(file)),
        },
        Ok(None) | Err(_) => Reply::Free,
    }
}

/// Of a call that the filter refuses: only whether there is what it is about, and whether metadata
/// are the caller's to change.
fn allowed(judge: &Judge<'_>, attempt: &Attempt) -> Reply {
    let as_name = attempt.what.takes_a_name();
    let Ok(location) = locate(&attempt.target, judge.caller, judge.numbers, as_name) else {
        return Reply::Free;
    };
    if let What::Change(change) = &attempt.what {
        let Some((file, node)) = &location.node else { return Reply::Free };
        let rights = may_change(change, judge.identity, file.as_fd(), node, judge.view);
        if rights.is_err() {
            return Reply::Free;
        }
    }
    Reply::Denied {
        errno: Errno::EPERM as i32,
        layer: Layer::Seccomp,
        path: location.path(|file| judge.view.name_of(file)),
    }
}

fn performed(judge: &Judge<'_>, attempt: &Attempt) -> Reply {
    let What::Change(change) = &attempt.what else { return Reply::Failed(Errno::EINVAL as i32) };
    let location = match locate(&attempt.target, judge.caller, judge.numbers, false) {
        Ok(location) => location,
        Err(errno) => return Reply::Failed(errno as i32),
    };
    let Some((file, node)) = &location.node else { return Reply::Failed(Errno::ENOENT as i32) };
    let ours = !judge.view.has_mount(node, file.as_fd())
        || judge.view.is_below_roots(file.as_fd(), node, true) == Ok(true);
    if ours {
        return match perform(change, file.as_fd()) {
            Ok(()) => Reply::Done,
            Err(errno) => Reply::Failed(errno as i32),
        };
    }
    let own_rights = may_change(change, judge.identity, file.as_fd(), node, judge.view);
    match own_rights {
        Err(_) => Reply::Failed(Errno::EPERM as i32),
        Ok(()) => Reply::Denied {
            errno: Errno::EPERM as i32,
            layer: Layer::Observer,
            path: location.path(|file| judge.view.name_of(file)),
        },
    }
}

fn find(judge: &Judge<'_>, plan: &ObserverPlan, target: &Target) -> (Reply, Option<OwnedFd>) {
    let failed = |errno: Errno| (Reply::Failed(errno as i32), None);
    let location = match locate(target, judge.caller, judge.numbers, false) {
        Ok(location) => location,
        Err(errno) => return failed(errno),
    };
    let path = location.path(|file| judge.view.name_of(file));
    let Some((file, node)) = location.node else { return failed(Errno::ENOENT) };
    // The kernel asks in this order, unix(7).
    if let Err(errno) = access::check(file.as_fd(), AccessFlags::W_OK)
        && errno != Errno::EROFS
    {
        return failed(Errno::EACCES);
    }
    if node.kind() != libc::S_IFSOCK {
        return failed(Errno::ECONNREFUSED);
    }
    let listed = |name: &OsString| {
        let there = judge.view.on_host_following(Path::new(name));
        there
            .and_then(|file| node::of_file(file.as_fd()))
            .is_ok_and(|there| (there.device, there.inode) == (node.device, node.inode))
    };
    let ours = if judge.view.own_mounts() {
        judge.view.lets_change(file.as_fd(), &node, true)
    } else {
        judge.view.is_below_roots(file.as_fd(), &node, true)
    };
    if ours == Ok(true) || plan.sockets.iter().any(listed) {
        return (Reply::Found(path), Some(file));
    }
    let layer = if plan.decides_sockets { Layer::Observer } else { Layer::Landlock };
    (Reply::Denied { errno: Errno::EACCES as i32, layer, path }, None)
}
