//! Sockets of the host, which no command reaches, by whatever name.

use std::os::unix::fs::symlink;

use crate::host::{Host, Listener};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_user};
use crate::support::observed::{CONFINED, Observed, attempt, script, unconfined, unreadable_probe};
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("refused::each", each);
    cases.extend(for_each_rung("refused::by-other-names", by_other_names));
    cases.extend(for_each_rung("refused::as-outside", as_outside));
    cases.extend(for_each_rung("refused::often", often));
    cases.extend(for_each_rung("refused::datagrams", datagrams));
    cases.extend(for_each_rung("refused::strange-callers", strange_callers));
    for mode in CONFINED {
        let name = format!("refused::unreadable-program::{mode}");
        cases.push(for_user(&name, Persona::ordinary(), move |caller| {
            unreadable_program(caller, mode)
        }));
    }
    cases
}

fn denial(listener: &Listener, program: &str, count: u32) -> String {
    format!("connect connect {} EACCES observer {program} {count}", listener.name)
}

/// By blocking sockets and by others. Without the sandbox the same attempt succeeds.
fn each(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    for listener in &host.listeners {
        let text = listener.attempt();
        problems.equal(&text, unconfined(caller, &text)?.as_str(), "connect ok");
        problems.equal("connected", listener.connected(), 1);
        for (text, listed) in [
            (format!("$P {text}; exit 3"), listener),
            (format!("$P {text} NONBLOCK; exit 3"), listener),
        ] {
            let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
            problems.equal(&text, ran.answer()?.as_str(), "connect EACCES");
            let top = caller.path("").canonicalize()?.display().to_string();
            let line = denial(listed, "dsh-probe", 1).replace(&top, "@");
            ran.check_denials(&mut problems, &text, &[&line]);
            problems.equal("denied", ran.facts.denied, Some(true));
            let remedy = ran.facts.denials.first().and_then(|denial| denial.remedy.clone());
            let expected = format!("--socket {}", listener.name);
            problems.contains("remedy", &remedy.unwrap_or_default(), &expected);
        }
    }
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// Other names of `@/home/stream`.
const NAMES: [&str; 10] = [
    "../home/stream",
    "../workspace/.././home//stream",
    "link",
    "chain",
    "directory/stream",
    "/proc/self/cwd/../home/stream",
    "/proc/self/root$T/home/stream",
    "/proc/self/fd/5/stream",
    "/dev/fd/5/stream",
    "/tmp/link",
];

fn by_other_names(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    let workspace = caller.workspace();
    symlink("../home/stream", workspace.join("link"))?;
    symlink("link", workspace.join("chain"))?;
    symlink("../home", workspace.join("directory"))?;
    let mut check = |text: &str| -> std::io::Result<()> {
        let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
        problems.equal(text, ran.answer()?.as_str(), "connect EACCES");
        let line = "connect connect @/home/stream EACCES observer dsh-probe 1";
        ran.check_denials(&mut problems, text, &[line]);
        Ok(())
    };
    for name in NAMES {
        let text = format!(
            "ln -s $T/home/stream /tmp/link; exec 5<$T/home\n$P unix-connect {name} STREAM; exit 3"
        );
        check(&text)?;
    }
    // The file itself, opened for its path alone.
    check("$P unix-by-descriptor $T/home/stream; exit 3")?;
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// What fails outside fails in the same way, and nothing is denied.
fn as_outside(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    caller.make_file("home/file", "")?;
    caller.make_dir("home/directory")?;
    drop(Listener::at(&caller.path("home/closed"), "STREAM")?);
    for (name, kind, errno) in [
        ("@/home/missing", "STREAM", "ENOENT"),
        ("@/home/missing/socket", "STREAM", "ENOENT"),
        ("@/home/file/socket", "STREAM", "ENOTDIR"),
        ("@/home/file", "STREAM", "ECONNREFUSED"),
        ("@/home/directory", "STREAM", "ECONNREFUSED"),
        ("/tmp/missing", "SEQPACKET", "ENOENT"),
    ] {
        let text = format!("unix-connect {name} {kind}");
        let expected = format!("connect {errno}");
        problems.equal(&text, unconfined(caller, &text)?, expected.clone());
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, &text))?;
        problems.equal(&text, ran.answer()?, expected);
        ran.check_denials(&mut problems, &text, &[]);
    }
    // Whether anybody listens there, or as what, cannot be asked without connecting.
    for (name, kind) in [("@/home/closed", "STREAM"), ("@/home/stream", "SEQPACKET")] {
        let text = format!("unix-connect {name} {kind}");
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, &text))?;
        let answer = ran.answer()?;
        problems.check(answer != "connect ok", || format!("{text}: {answer}"));
    }
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// One kind of denial, however often.
fn often(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    let text = "for i in $(seq 20); do $P unix-connect $T/home/stream STREAM & done; wait; exit 3";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let line = "connect connect @/home/stream EACCES observer dsh-probe 20";
    ran.check_denials(&mut problems, "often", &[line]);
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// A datagram reaches a socket without a connection: there are no such sockets.
fn datagrams(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for (kind, word) in [("DGRAM", "datagram"), ("RAW", "raw")] {
        let text = format!("socket UNIX {kind} 0");
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, &text))?;
        problems.equal(&text, ran.answer()?.as_str(), "socket ESOCKTNOSUPPORT");
        let line = format!("socket - unix {word} ESOCKTNOSUPPORT seccomp dsh-probe 1");
        ran.check_denials(&mut problems, &text, &[&line]);
    }
    problems.verdict(&mode)
}

/// Threads that are not like their processes, and a full table of descriptors.
fn strange_callers(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    for (text, end) in [
        ("$P leader-gone /tmp/new $T/home/stream", "ok: 1 ok, Err(EACCES)"),
        ("$P other-descriptors $T/home/stream", "connect EACCES"),
        (
            "ulimit -n 30; $P fill-descriptors /tmp/new $T/home/stream",
            "socket ok: EMFILE, EMFILE, ok, EACCES",
        ),
    ] {
        let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
        problems.equal(text, ran.answer()?.as_str(), end);
        let line = "connect connect @/home/stream EACCES observer dsh-probe 1";
        ran.check_denials(&mut problems, text, &[line]);
    }
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// A program that its user may execute and not read: nobody may look into it, so nobody knows what it
/// connects to, and it connects to nothing.
fn unreadable_program(caller: &Caller, mode: &str) -> Verdict {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can make a program that its user cannot read");
    }
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    unreadable_probe(caller)?;
    for listener in &host.listeners {
        let text = format!("$T/unreadable {}; exit 3", listener.attempt());
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
        problems.equal(&text, ran.answer()?.as_str(), "connect EACCES");
        let told = matches!(&ran.facts.denials[..], [one] if one.operation == "connect");
        problems.check(told, || format!("{:?}", ran.denials()));
        ran.check_shape(&mut problems, &text);
    }
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}
