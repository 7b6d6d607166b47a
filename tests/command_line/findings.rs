//! Ways past the layers that an attacker once found, each kept closed.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

const CONFINED: [&str; 2] = ["read-only", "workspace-write"];

tests![
    the_programs_own_file_through_proc,
    the_programs_own_file_through_an_interpreter_line,
    a_lease_on_a_file_of_the_callers,
    ioctls_that_need_no_write_access,
    sockets_of_the_hosts_network,
];

/// A process's /proc/PID/exe leads through the mount that it was executed from: the mounts stop
/// chmod there (EROFS) only because the command's first image is executed inside.
fn the_programs_own_file_through_proc(caller: &Caller) -> Outcome {
    let copy = own_copy(caller)?;
    for mode in CONFINED {
        let mut command = caller.command(&copy);
        command.args(["--mode", mode, "--", "/proc/self/exe", "--mode", "danger-full-access"]);
        command.args(["--", "sh", "-c", "chmod 700 /proc/[0-9]*/exe"]);
        let ended = finish(&mut command)?;
        assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
        assert_eq!(copy.metadata()?.permissions().mode() & 0o7777, 0o755, "{mode}");
    }
    Ok(())
}

/// The same from content of the workspace alone: the kernel opens the interpreter of a script in
/// the process that executes it.
fn the_programs_own_file_through_an_interpreter_line(caller: &Caller) -> Outcome {
    let copy = own_copy(caller)?;
    let script = caller
        .make_file("workspace/run", "#!/proc/self/exe -cchmod${IFS}700${IFS}/proc/*/exe\n")?;
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
    for mode in CONFINED {
        let mut command = caller.command(&copy);
        finish(command.args(["--mode", mode, "--", "./run"]))?;
        assert_eq!(copy.metadata()?.permissions().mode() & 0o7777, 0o755, "{mode}");
    }
    Ok(())
}

/// Every other program that opens the file would wait: seccomp refuses it (EPERM).
fn a_lease_on_a_file_of_the_callers(caller: &Caller) -> Outcome {
    let file = caller.make_file("home/file", "content")?;
    let script = "import fcntl, sys\n\
                  try: fcntl.fcntl(open(sys.argv[1]), fcntl.F_SETLEASE, fcntl.F_WRLCK); print('leased')\n\
                  except OSError as error: print(error.errno)";
    for mode in CONFINED {
        let mut command = caller.dsh_run(["--mode", mode, "--", "python3", "-c", script]);
        let ended = finish(command.arg(&file))?;
        assert_eq!(ended.stdout, format!("{}\n", libc::EPERM), "{mode}: {}", ended.stderr);
    }
    Ok(())
}

/// seccomp refuses them whatever they are called on (EPERM): encryption keys, and what stays of a
/// terminal's state.
fn ioctls_that_need_no_write_access(caller: &Caller) -> Outcome {
    let script = "import fcntl, sys\n\
                  for number in (0xc0506617, 0xc0406618, 0xc0406619, 0x5423, 0x540c, 0x5412):\n\
                  \x20try: fcntl.ioctl(0, number, bytes(80)); print('done')\n\
                  \x20except OSError as error: print(error.errno)";
    for mode in CONFINED {
        let ended = finish(&mut caller.dsh_run(["--mode", mode, "--", "python3", "-c", script]))?;
        let expected = format!("{}\n", libc::EPERM).repeat(6);
        assert_eq!(ended.stdout, expected, "{mode}: {}", ended.stderr);
    }
    Ok(())
}

/// A socket keeps the network in which it was made, and all but a connected unix stream can be
/// connected anew.
fn sockets_of_the_hosts_network(caller: &Caller) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let tcp = || TcpStream::connect(listener.local_addr()?).map(OwnedFd::from);
    let udp = || UdpSocket::bind("127.0.0.1:0").map(OwnedFd::from);
    let datagram = || UnixDatagram::pair().map(|pair| OwnedFd::from(pair.0));
    let sockets: [&dyn Fn() -> std::io::Result<OwnedFd>; 3] = [&tcp, &udp, &datagram];
    for make in sockets {
        for network in ["off", "loopback"] {
            let mut command = caller.dsh_run(["--network", network, "--", "touch", "mark"]);
            let ended = finish(command.stdin(Stdio::from(make()?)))?;
            assert_eq!(ended.status.code(), Some(125));
            assert!(
                ended.stderr.starts_with("dsh-run: standard input is a socket"),
                "{}",
                ended.stderr
            );
        }
        let mut command = caller.dsh_run(["--network", "host", "--", "true"]);
        let ended = finish(command.stdin(Stdio::from(make()?)))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    }
    Ok(())
}

/// The program, as a file of the caller's. Another process writes it: a thread of this one that forks
/// meanwhile would hold it open for writing, and to execute it would be ETXTBSY.
fn own_copy(caller: &Caller) -> std::io::Result<PathBuf> {
    let copy = caller.path("home/copy");
    finish(caller.command("cp").arg(caller.program()).arg(&copy))?;
    Ok(copy)
}
