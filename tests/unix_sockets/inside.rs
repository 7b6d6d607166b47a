//! Sockets that a command makes itself work as outside: the probe does the same there, and must come
//! to the same end.

use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, script, unconfined};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("inside::connected", connected);
    cases.extend(for_each_rung("inside::no-room", no_room));
    cases.extend(for_each_rung("inside::strange-callers", strange_callers));
    cases.extend(for_each_user("inside::alarmed", alarmed));
    cases.extend(for_each_user("inside::ended", ended));
    cases
}

/// Where sockets can be made.
fn places(mode: &str) -> &'static [&'static str] {
    if mode == "read-only" { &["/tmp", "/dev/shm"] } else { &["/tmp", "/dev/shm", "$T/workspace"] }
}

/// By the name under which it was bound, and by others.
fn connected(caller: &Caller, mode: &str) -> Verdict {
    const NAMES: [&str; 6] =
        ["own", "./own", "$PWD/own", "/proc/self/cwd/own", "link", "../${PWD##*/}/own"];
    let mut problems = Problems::default();
    let id = caller.persona().id();
    for place in places(mode) {
        for kind in ["STREAM", "SEQPACKET"] {
            let mut text = format!("cd {place}; ln -s own link\n");
            for name in NAMES {
                for blocking in ["", "NONBLOCK"] {
                    text += &format!("$P unix-own own {name} {kind} {blocking}; rm own\n");
                }
            }
            text += &format!("$P unix-reconnect own own {kind}; rm own link");
            let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
            let end = format!("getpeername ok: uid {id} gid {id}, connected to own");
            let mut expected = vec![end; 2 * NAMES.len()];
            expected.push("connect again EISCONN".to_owned());
            problems.equal(place, ran.answers()?, expected);
            ran.check_denials(&mut problems, place, &[]);
        }
    }
    problems.verdict(&mode)
}

/// What becomes of one more where there is no room.
const NO_ROOM: [(&str, &str); 7] = [
    ("nonblock", "connect EAGAIN"),
    ("timeout", "connect EAGAIN: 0 signals"),
    ("wait", "connect ok: 0 signals"),
    ("closed", "connect ECONNREFUSED: 0 signals"),
    ("alarm", "connect EINTR: 1 signals"),
    ("alarm-restart", "connect ok: 1 signals"),
    ("alarm-two", "socket ok: 1 signals, EINTR and connected"),
];

fn no_room(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for kind in ["STREAM", "SEQPACKET"] {
        for (how, end) in NO_ROOM {
            let text = format!("unix-backlog @/home/full @/home/full {kind} {how}");
            problems.equal(&text, unconfined(caller, &text)?.as_str(), end);
            std::fs::remove_file(caller.path("home/full"))?;
            let text = format!("$P unix-backlog /tmp/full /tmp/full {kind} {how}");
            let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
            problems.equal(&text, ran.answer()?.as_str(), end);
            ran.check_denials(&mut problems, &text, &[]);
        }
    }
    problems.verdict(&mode)
}

/// Alarms come all the time while connections are made: none is made twice, and none fails of a signal
/// that lets calls go on.
fn alarmed(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for kind in ["STREAM", "SEQPACKET"] {
        let text = format!("$P unix-alarmed /tmp/own /tmp/own {kind} 300 restart");
        let ran = Observed::run(caller, &[], script(caller, &text))?;
        problems.equal(&text, ran.answer()?.as_str(), "socket ok: 300 ok");
        let text = text.replace("restart", "interrupt");
        let ran = Observed::run(caller, &[], script(caller, &text))?;
        let answer = ran.answer()?;
        let errnos = answer.trim_start_matches("socket ok: ").split(", ");
        let other = errnos.filter(|one| !one.ends_with(" ok") && !one.ends_with(" EINTR"));
        problems.equal(&text, other.collect(), Vec::new());
    }
    problems.verdict(&"")
}

/// Starts somebody who accepts, at `/tmp/own`.
pub(crate) const SERVE: &str =
    "$P unix-serve /tmp/own STREAM & until [ -s /tmp/own.ready ]; do sleep 0.05; done";

/// Threads that are not like their processes connect what is theirs.
fn strange_callers(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for (text, end) in [
        ("$P leader-gone /tmp/new /tmp/own", "ok: 1 ok, Ok(())"),
        ("$P other-descriptors /tmp/own", "connect ok: Err(ENOTCONN)"),
        (
            "ulimit -n 30; $P fill-descriptors /tmp/new /tmp/own",
            "socket ok: EMFILE, EMFILE, ok, ok",
        ),
    ] {
        let text = format!("{SERVE}\n{text}\nkill $!");
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
        problems.equal(&text, ran.answer()?.as_str(), end);
        ran.check_denials(&mut problems, &text, &[]);
    }
    problems.verdict(&mode)
}

/// A program that waits for room can be ended at any time, by whoever may; and the run ends.
fn ended(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let text = "for signal in KILL TERM INT; do
            timeout -s $signal 0.3 $P unix-backlog /tmp/full /tmp/full STREAM for-ever; echo $?
            rm /tmp/full
        done; $P unix-own /tmp/own /tmp/own STREAM; exit 4";
    let ran = Observed::run(caller, &[], script(caller, text))?;
    problems.equal("status", ran.status, 4);
    let said: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with('{')).collect();
    problems.equal("ends", said, vec!["137", "124", "124"]);
    let options = ["--timeout", "500ms", "--kill-after", "100ms"];
    let text = "$P unix-backlog /tmp/full /tmp/full STREAM for-ever";
    let timed = Observed::run(caller, &options, script(caller, text))?;
    problems.equal("timed out", timed.status, 124);
    timed.check_denials(&mut problems, "timed out", &[]);
    problems.verdict(&ran)
}
