//! An observer that is killed or stopped, which only the host can do: nothing is allowed for that,
//! and the command can be ended as ever.

use std::io;
use std::io::Write;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::outside::{HostSocket, Outside};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::fixture::Fixture;
use crate::support::observed::{Observed, script, start};
use crate::support::problems::Problems;
use crate::support::processes::marked;
use crate::support::running::Running;
use crate::support::skip::skip;
use crate::support::stage::Programs;
use crate::support::staged::{STAGES, Staged};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("observer_ends::killed", killed);
    cases.extend(for_each_rung("observer_ends::stopped", stopped));
    for staged in STAGES {
        let name = format!("observer_ends::out-of-reach::{}", staged.name);
        cases.push(Case::new(name, move |programs| out_of_reach(programs, &staged)));
    }
    cases
}

/// The observer of this caller's run: its workers have its name too, and it for a parent.
fn observer(caller: &Caller) -> io::Result<Pid> {
    let mark = caller.path("").display().to_string();
    let named: Vec<_> =
        marked(&mark).into_iter().filter(|process| process.name == "dsh-observer").collect();
    let pids: Vec<Pid> = named.iter().map(|process| process.pid).collect();
    let first = named.iter().find(|process| !pids.contains(&process.parent));
    first.map(|process| process.pid).ok_or_else(|| io::Error::other("there is no observer"))
}

/// Is denied something, says so, and goes on when told to.
const TEXT: &str = "touch $T/outside/new; echo ready >&2; read go
    $P unix-connect $T/home/socket STREAM; mkdir $T/outside/new; touch /tmp/new; exit 5";

/// Runs until the observer has been struck and the command told to go on.
fn struck(caller: &Caller, options: &[&str], signal: Signal) -> io::Result<(Running, HostSocket)> {
    let socket = HostSocket::of(caller)?;
    let mut running = start(caller, options, script(caller, TEXT), Stdio::piped())?;
    if !running.wait_for_stderr("ready")? {
        return Err(io::Error::other("it ended"));
    }
    kill(observer(caller)?, signal)?;
    // Nobody may be left to read it.
    let _ = running.stdin().map(|mut stdin| stdin.write_all(b"go\n"));
    Ok((running, socket))
}

const DENIAL: &str = "open write @/outside/new EROFS mount touch 1";

fn killed(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let (running, socket) = struck(caller, &["--mode", mode], Signal::SIGKILL)?;
    let ran = Observed::of(caller, running)?;
    problems.equal("status", ran.status, 125);
    problems.equal("denials", ran.denials(), vec![DENIAL.to_owned()]);
    problems.check(!ran.stdout.contains("\"errno\":null}]"), || "connected".to_owned());
    for words in ["ENOSYS", "Function not implemented"] {
        let said = ran.stdout.contains(words) || ran.stderr.contains(words);
        problems.check(!said, || format!("answered with {words}"));
    }
    let last = ran.stderr.lines().last().unwrap_or_default();
    problems.check(last.starts_with("dsh-run: "), || "dsh-run said nothing".to_owned());
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

fn stopped(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let options = ["--mode", mode, "--timeout", "2s", "--kill-after", "200ms"];
    let (running, socket) = struck(caller, &options, Signal::SIGSTOP)?;
    let ran = Observed::of(caller, running)?;
    problems.equal("status", ran.status, 124);
    problems.equal("denials", ran.denials(), vec![DENIAL.to_owned()]);
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

/// Without a pid namespace the observer has a number that the command can guess, and for an ordinary
/// user the same user id. The command cannot harm it.
fn out_of_reach(programs: &Programs, staged: &Staged) -> Verdict {
    const TEXT: &str = "mkdir $T/outside/new
        for stat in /proc/[0-9]*/stat; do
            read -r pid name rest <$stat 2>/dev/null || continue
            [ \"$name\" = '(dsh-observer)' ] || continue
            echo found; $P kill $pid 9; $P kill $pid 19; $P ptrace-seize $pid; $P prlimit $pid
            $P process-vm-readv $pid; $P pidfd-getfd $pid 3
        done
        mkdir $T/outside/new; exit 6";
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let fixture = Fixture::new(staged.uid)?;
    let ran = staged.run(programs, &fixture, "workspace-write", TEXT)?;
    problems.contains("observers", &ran.stdout, "found");
    for answer in ran.answers()? {
        problems.check(answer.ends_with("EPERM"), || answer.clone());
    }
    problems.equal("status", ran.status, 6);
    let line = "mkdir write @/outside/new EACCES landlock mkdir 2".to_owned();
    problems.check(ran.denials().contains(&line), || format!("no {line}"));
    ran.check_shape(&mut problems, "out of reach");
    problems.verdict(&ran)
}
