//! What makes a program a warden, and what does not.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use dsh_sandbox::{Warden, WardenProgram, WorldPlan};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    the_name_alone_is_not_enough,
    a_socket_of_another_kind_is_not_enough,
    a_socket_of_another_process_is_not_enough,
    a_name_in_the_environment_is_nothing,
    a_fork_is_refused_where_there_are_threads,
    a_program_that_does_not_exist,
];

/// Checks that the command behaves as the test program that it is: it lists its tests.
fn assert_no_warden(command: &mut Command) -> Outcome {
    let ended = finish(command)?;
    let what = format!("{command:?}: {}{}", ended.stdout, ended.stderr);
    assert!(ended.status.success(), "{what}");
    assert!(ended.stdout.contains("the_name_alone_is_not_enough"), "it became a warden: {what}");
    Ok(())
}

fn this_program(caller: &Caller) -> Command {
    let mut command = caller.command(caller.program());
    command.arg("--list").arg0("dsh-warden");
    command
}

fn packets() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
}

fn the_name_alone_is_not_enough(caller: &Caller) -> Outcome {
    assert_no_warden(&mut this_program(caller))?;
    let (reader, writer) = std::io::pipe()?;
    drop(writer);
    assert_no_warden(this_program(caller).stdin(reader))
}

fn a_socket_of_another_kind_is_not_enough(caller: &Caller) -> Outcome {
    let (_here, there) = UnixStream::pair()?;
    assert_no_warden(this_program(caller).stdin(OwnedFd::from(there)))?;
    let (_here, there) =
        socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC)?;
    assert_no_warden(this_program(caller).stdin(there))
}

fn a_socket_of_another_process_is_not_enough(caller: &Caller) -> Outcome {
    // The shell is the parent, and this process made the socket.
    let (_here, there) = packets()?;
    let mut command = caller.command("bash");
    command.args(["-c", "(exec -a dsh-warden \"$0\" --list); exit $?"]).arg(caller.program());
    assert_no_warden(command.stdin(there))?;
    // With the right name, the right kind of socket and the right parent it is one: it waits for
    // orders, of which there are none.
    let (here, there) = packets()?;
    drop(here);
    let ended = finish(this_program(caller).stdin(there))?;
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), ""));
    // And without the name it is not.
    let (_here, there) = packets()?;
    let mut command = caller.command(caller.program());
    assert_no_warden(command.arg("--list").stdin(there))
}

fn a_name_in_the_environment_is_nothing(caller: &Caller) -> Outcome {
    let (_here, there) = packets()?;
    let mut command = caller.command(caller.program());
    command.arg("--list").env("_", "dsh-warden").env("DSH_WARDEN", "1").stdin(Stdio::from(there));
    assert_no_warden(&mut command)
}

fn a_fork_is_refused_where_there_are_threads(_: &Caller) -> Outcome {
    // One more than the test runs in, however the harness was started.
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| Warden::start(&WardenProgram::Fork, &WorldPlan::default()).map(drop)).join()
    });
    let error = refused.map_err(|_| "the thread panicked")?.err().ok_or("it forked")?;
    let text = error.to_string();
    assert!(text.contains("thread"), "says nothing of threads: {text}");
    assert!(text.contains("WardenProgram"), "does not say what to use instead: {text}");
    Ok(())
}

fn a_program_that_does_not_exist(caller: &Caller) -> Outcome {
    let program = WardenProgram::Program(caller.path("missing"));
    let error = Warden::start(&program, &WorldPlan::default()).err().ok_or("it started")?;
    assert!(error.to_string().contains("ENOENT"), "{error}");
    // One that does not answer is an error too, and not a wait without end.
    let program = WardenProgram::Program("/bin/true".into());
    let Ok(mut warden) = Warden::start(&program, &WorldPlan::default()) else { return Ok(()) };
    let answer = warden.next(Some(crate::world::DEADLINE));
    assert!(answer.is_err(), "{answer:?}");
    Ok(())
}
