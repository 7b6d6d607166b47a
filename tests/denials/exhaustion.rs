//! Too few descriptors and too many signals: what cannot be served is refused, and never allowed.

use std::collections::BTreeMap;

use crate::outside::{HostSocket, Outside};
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, attempt, script};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("exhaustion::of-dsh-run", of_dsh_run);
    cases.extend(for_each_rung("exhaustion::of-the-command", of_the_command));
    cases.extend(for_each_rung("exhaustion::alarms", alarms));
    cases.extend(for_each_user("exhaustion::many-connections", many_connections));
    cases
}

/// With few descriptors dsh-run starts no command, or ends one about which nobody can decide, and
/// says so; with a few more everything is as ever.
fn of_dsh_run(caller: &Caller, mode: &str) -> Verdict {
    const SCRIPT: &str = r#"ulimit -n "$1"; shift; exec "$@""#;
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let socket = HostSocket::of(caller)?;
    let text = "echo ran; mkdir $T/outside/new; $P unix-connect $T/home/socket STREAM; exit 3";
    let mut ran = 0;
    for limit in (4..=40).step_by(2) {
        let mut command = caller.command("bash");
        command.args(["-c", SCRIPT, "bash", &limit.to_string()]).arg(caller.program());
        command.args(["--mode", mode, "--summary", "--"]).args(script(caller, text));
        let ended = finish(&mut command)?;
        let what = format!("{limit}: {:?}\n{}\n{}", ended.status, ended.stdout, ended.stderr);
        if ended.status.code() == Some(125) {
            let last = ended.stderr.lines().last().unwrap_or_default();
            // No call is answered as on a kernel that lacks it.
            let sensible = !ended.stdout.contains("ENOSYS")
                && !ended.stderr.contains("Function not implemented");
            problems.check(sensible && last.starts_with("dsh-run: "), || what);
            continue;
        }
        ran += 1;
        let whole = ended.status.code() == Some(3)
            && ended.stdout.contains("\"EACCES\"")
            && ended.stderr.contains("outside/new: EROFS by mount")
            && ended.stderr.contains("home/socket: EACCES by observer");
        problems.check(whole, || what);
    }
    problems.check(ran > 0, || "it never ran".to_owned());
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// The command's own table is full: it is told what it would be told outside, and nothing else is
/// allowed or refused for that.
fn of_the_command(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let socket = HostSocket::of(caller)?;
    let text = "ulimit -n 30; $P fill-descriptors $T/outside/new $T/home/socket; exit 3";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let expected = "socket ok: EMFILE, EMFILE, EROFS, EACCES".to_owned();
    problems.equal("answer", ran.answer()?, expected);
    for line in [
        "mkdir write @/outside/new1 EROFS mount dsh-probe 1",
        "connect connect @/home/socket EACCES observer dsh-probe 1",
    ] {
        let listed = ran.denials().iter().any(|denial| denial == line);
        problems.check(listed, || format!("no {line}"));
    }
    ran.check_shape(&mut problems, "full");
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

/// An alarm comes each millisecond. Opening a file waits for nobody, so no call fails of it where the
/// handler lets calls go on. Where it lets those fail that wait, a watched call can, until the
/// observer has it: the kernel knows no other way. At most one for each alarm.
fn alarms(caller: &Caller, mode: &str) -> Verdict {
    const TIMES: u64 = 10_000;
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    for (path, end) in [("/tmp/new", "ok"), ("@/outside/new", "EROFS")] {
        for how in ["restart", "interrupt"] {
            let words = attempt(caller, &format!("alarmed {path} {TIMES} {how}"));
            let ran = Observed::run(caller, &["--mode", mode], words)?;
            let answer = ran.answer()?;
            let parts = answer.trim_start_matches("ok: ").split([',', ';']);
            let counts: BTreeMap<&str, u64> = parts
                .filter_map(|part| part.trim().split_once(' '))
                .filter_map(|(count, what)| Some((what, count.parse().ok()?)))
                .collect();
            let count = |what| counts.get(what).copied().unwrap_or_default();
            problems.check(count("alarms") > 0, || format!("no alarms: {answer}"));
            problems.equal(&answer, count(end) + count("EINTR"), TIMES);
            let most = if how == "restart" { 0 } else { count("alarms") };
            problems.check(count("EINTR") <= most, || format!("interrupted: {answer}"));
            ran.check_shape(&mut problems, path);
        }
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// A hundred connections that all wait, each for a process of the observer's: the rest goes on, and
/// all of them end with the command.
fn many_connections(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "for i in $(seq 100); do $P unix-backlog /tmp/s$i /tmp/s$i STREAM for-ever & done
        sleep 2; touch $T/outside/new; $P unix-own /tmp/own /tmp/own STREAM; exit 3";
    let ran = Observed::run(caller, &[], script(caller, text))?;
    problems.equal("status", ran.status, 3);
    let line = "open write @/outside/new EROFS mount touch 1";
    ran.check_denials(&mut problems, "denials", &[line]);
    let answer = ran.answer()?;
    problems.check(answer.starts_with("getpeername ok"), || answer.clone());
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}
