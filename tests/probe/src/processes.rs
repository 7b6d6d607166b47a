//! Other processes: the sandbox's init, and those of the host.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::args::{number, path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, CWD, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("daemon", daemon),
    ("kill", kill),
    ("kill-everything", kill_everything),
    ("kill-group", kill_group),
    ("leave-daemon", leave_daemon),
    ("pause", pause),
    ("pidfd-getfd", pidfd_getfd),
    ("pidfd-kill", pidfd_kill),
    ("prlimit", prlimit),
    ("process-vm-readv", process_vm_readv),
    ("ptrace-attach", ptrace_attach),
    ("ptrace-seize", ptrace_seize),
    ("readlink", readlink),
    ("set-owner", set_owner),
    ("setpriority", setpriority),
];

const PTRACE_ATTACH: i64 = 16;
const PTRACE_SEIZE: i64 = 0x4206;

/// `ptrace-attach PID`
fn ptrace_attach(trail: &mut Trail, arguments: &[String]) -> Outcome {
    ptrace(trail, PTRACE_ATTACH, number(arguments, 0)?)
}

/// `ptrace-seize PID`
fn ptrace_seize(trail: &mut Trail, arguments: &[String]) -> Outcome {
    ptrace(trail, PTRACE_SEIZE, number(arguments, 0)?)
}

fn ptrace(trail: &mut Trail, request: i64, pid: i64) -> Outcome {
    let arguments = vec![Arg::Int(request), Arg::Int(pid), NONE, NONE];
    trail.step("ptrace", call(libc::SYS_ptrace, arguments))?;
    Ok(())
}

/// `process-vm-readv PID`: the permission is checked before the address.
fn process_vm_readv(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let pid = number(arguments, 0)?;
    let mut bytes = [0; 8];
    let local = words(&[bytes.as_mut_ptr().expose_provenance() as u64, 8]);
    let remote = words(&[0x40_0000, 8]);
    let arguments =
        vec![Arg::Int(pid), Arg::In(&local), Arg::Int(1), Arg::In(&remote), Arg::Int(1), NONE];
    trail.step("process_vm_readv", call(libc::SYS_process_vm_readv, arguments))?;
    Ok(())
}

fn pidfd(trail: &mut Trail, arguments: &[String]) -> Result<i64, Stop> {
    let pid = number(arguments, 0)?;
    trail.step("pidfd_open", call(libc::SYS_pidfd_open, vec![Arg::Int(pid), NONE]))
}

/// `pidfd-getfd PID FD`
fn pidfd_getfd(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (pidfd, target) = (pidfd(trail, arguments)?, number(arguments, 1)?);
    let arguments = vec![Arg::Int(pidfd), Arg::Int(target), NONE];
    trail.step("pidfd_getfd", call(libc::SYS_pidfd_getfd, arguments))?;
    Ok(())
}

/// `pidfd-kill PID SIGNAL`
fn pidfd_kill(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (pidfd, signal) = (pidfd(trail, arguments)?, number(arguments, 1)?);
    let arguments = vec![Arg::Int(pidfd), Arg::Int(signal), NONE, NONE];
    trail.step("pidfd_send_signal", call(libc::SYS_pidfd_send_signal, arguments))?;
    Ok(())
}

/// `kill PID SIGNAL`
fn kill(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let arguments = vec![Arg::Int(number(arguments, 0)?), Arg::Int(number(arguments, 1)?)];
    trail.step("kill", call(libc::SYS_kill, arguments))?;
    Ok(())
}

/// Starts another probe and waits until it says that it runs.
fn start_own(attempt: &str) -> Result<Child, Stop> {
    let failed = |error: std::io::Error| Stop::Misuse(format!("own child: {error}"));
    let probe = std::env::current_exe().map_err(failed)?;
    let mut own = Command::new(probe);
    let mut own =
        own.arg(attempt).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(stdout) = own.stdout.take() {
        BufReader::new(stdout).read_line(&mut String::new()).map_err(failed)?;
    }
    Ok(own)
}

/// `kill-everything SIGNAL`: kill(-1). The probe starts a process of its own first, so that the
/// signal has a rightful target: without one the call fails for want of processes and proves
/// nothing.
fn kill_everything(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let signal = number(arguments, 0)?;
    let mut own = start_own("pause")?;
    trail.step("kill", call(libc::SYS_kill, vec![Arg::Int(-1), Arg::Int(signal)]))?;
    let failed = |error: std::io::Error| Stop::Misuse(format!("own child: {error}"));
    let ended_by = own.wait().map_err(failed)?.signal();
    trail.detail(format!("own child ended by signal {ended_by:?}"));
    Ok(())
}

/// `leave-daemon`: a process in a session of its own, which keeps stderr open. The suite waits for
/// the end of that stream, so a survivor shows.
fn leave_daemon(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("spawn", Ok(start_own("daemon")?))?;
    Ok(())
}

/// `daemon`: what `leave-daemon` leaves.
fn daemon(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("setsid", call(libc::SYS_setsid, Vec::new()))?;
    println!("detached");
    loop {
        std::thread::park();
    }
}

/// `kill-group`: kill(0). A process group is not cut at the border of a pid namespace.
fn kill_group(trail: &mut Trail, _: &[String]) -> Outcome {
    let signal = nix::sys::signal::Signal::SIGUSR1;
    let ignore = nix::sys::signal::SigHandler::SigIgn;
    // SAFETY: ignoring a signal installs no handler that could run.
    let ignored = unsafe { nix::sys::signal::signal(signal, ignore) };
    trail.step("signal", ignored)?;
    trail.step("kill", call(libc::SYS_kill, vec![NONE, Arg::Int(signal as i64)]))?;
    Ok(())
}

/// `pause`: says that it runs and waits for the end of its stdin, as the target of a signal.
fn pause(_: &mut Trail, _: &[String]) -> Outcome {
    println!("paused");
    let _ended = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    Ok(())
}

/// `prlimit PID`: one open file at most.
fn prlimit(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (pid, limit) = (number(arguments, 0)?, words(&[1, 1]));
    let resource = Arg::Int(i64::from(libc::RLIMIT_NOFILE));
    let arguments = vec![Arg::Int(pid), resource, Arg::In(&limit), NONE];
    trail.step("prlimit64", call(libc::SYS_prlimit64, arguments))?;
    Ok(())
}

/// `setpriority PID`
fn setpriority(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let pid = number(arguments, 0)?;
    let which = Arg::Int(i64::from(libc::PRIO_PROCESS));
    let arguments = vec![which, Arg::Int(pid), Arg::Int(19)];
    trail.step("setpriority", call(libc::SYS_setpriority, arguments))?;
    Ok(())
}

/// `set-owner PID`: has the kernel send SIGIO to another process, which would end it. The errno is
/// that of naming the owner; nobody is told whether the signal was sent.
fn set_owner(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let pid = number(arguments, 0)?;
    let failed = |error: std::io::Error| Stop::Misuse(format!("own sockets: {error}"));
    let (socket, mut peer) = UnixStream::pair().map_err(failed)?;
    let mut fcntl = |command: i32, value: i64| {
        let arguments =
            vec![Arg::Int(socket.as_raw_fd().into()), Arg::Int(command.into()), Arg::Int(value)];
        trail.step("fcntl", call(libc::SYS_fcntl, arguments))
    };
    fcntl(libc::F_SETOWN, pid)?;
    fcntl(libc::F_SETFL, libc::O_ASYNC.into())?;
    peer.write_all(b"data").map_err(failed)
}

/// `readlink PATH`: a magic link of /proc, without following it.
fn readlink(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let mut target = [0; 256];
    let read = call(
        libc::SYS_readlinkat,
        vec![CWD, Arg::Path(&path), Arg::Out(&mut target), Arg::Int(256)],
    );
    trail.step("readlinkat", read)?;
    let target = target.split(|byte| *byte == 0).next().unwrap_or_default();
    trail.detail(format!("{} -> {}", text(arguments, 0)?, String::from_utf8_lossy(target)));
    Ok(())
}
