//! A socket that the caller allows: that one, as far as the caller's own rights go, and no other.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use crate::host::{Host, Listener};
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, script, start};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("allowed::one", one);
    cases.extend(for_each_rung("allowed::by-a-link", by_a_link));
    cases.extend(for_each_rung("allowed::made-later", made_later));
    cases.extend(for_each_user("allowed::in-the-workspace", in_the_workspace));
    cases.extend(for_each_user("allowed::with-its-own-rights", own_rights));
    cases
}

fn one(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    let [allowed, others @ ..] = &host.listeners[..] else { return Err("no listeners".into()) };
    let options = ["--mode", mode, "--socket", &allowed.name];
    for blocking in ["", "NONBLOCK"] {
        let attempts: String = host
            .listeners
            .iter()
            .map(|listener| format!("$P {} {blocking}\n", listener.attempt()))
            .collect();
        let ran = Observed::run(caller, &options, script(caller, &format!("{attempts}exit 3")))?;
        let mut answers = vec!["connect EACCES"; host.listeners.len()];
        answers[0] = "connect ok";
        problems.equal("answers", ran.answers()?, answers.iter().map(|&a| a.to_owned()).collect());
        problems.equal("denials", ran.facts.denials.len(), others.len());
        problems.equal("connected", allowed.connected(), 1);
        ran.check_shape(&mut problems, "one");
    }
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// What the caller names may be a link of the host's: the socket is what it leads to.
fn by_a_link(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    symlink("stream", caller.path("home/link"))?;
    let link = caller.path("home/link").display().to_string();
    let text = "$P unix-connect $T/home/link STREAM; $P unix-connect $T/home/stream STREAM
        $P unix-connect $T/home/seqpacket SEQPACKET; exit 3";
    let ran = Observed::run(caller, &["--mode", mode, "--socket", &link], script(caller, text))?;
    let answers = ["connect ok", "connect ok", "connect EACCES"].map(str::to_owned).to_vec();
    problems.equal("answers", ran.answers()?, answers);
    problems.equal("connected", host.listeners[0].connected(), 2);
    host.check_unreached(&mut problems);
    problems.verdict(&mode)
}

/// A service that comes later, or again.
fn made_later(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let path = caller.path("home/later");
    let name = path.display().to_string();
    let options = ["--mode", mode, "--socket", &name];
    let text = "$P unix-connect $T/home/later STREAM; echo missing >&2; read go
        $P unix-connect $T/home/later STREAM; exit 3";
    let mut running = start(caller, &options, script(caller, text), Stdio::piped())?;
    problems.check(running.wait_for_stderr("missing")?, || "it ended".to_owned());
    let listener = Listener::at(&path, "STREAM")?;
    drop(running.stdin());
    let ran = Observed::of(caller, running)?;
    let answers = ["connect ENOENT", "connect ok"].map(str::to_owned).to_vec();
    problems.equal("answers", ran.answers()?, answers);
    problems.equal("connected", listener.connected(), 1);
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}

/// A name that the command itself can give to any socket is no permission. It may be refused as an
/// option, too.
fn in_the_workspace(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    for (name, text) in [
        ("workspace/agent", "ln -s $T/home/stream agent; $P unix-connect agent STREAM"),
        ("workspace/agent", "ln -s $T/home/stream agent; $P unix-connect $T/home/stream STREAM"),
        ("workspace/sub/stream", "ln -s $T/home sub; $P unix-connect sub/stream STREAM"),
        ("workspace/sub/stream", "ln -s $T/home sub; $P unix-connect $T/home/stream STREAM"),
        ("workspace/up/../stream", "ln -s $T/home/x up; $P unix-connect $T/home/stream STREAM"),
        ("link/stream", "mv sub old; ln -s $T/home sub; $P unix-connect $T/home/stream STREAM"),
    ] {
        caller.make_dir("home/x")?;
        caller.make_dir("workspace/old")?;
        fs::remove_dir(caller.path("workspace/old"))?;
        if name.starts_with("link") {
            caller.make_dir("workspace/sub")?;
            symlink("workspace/sub", caller.path("link"))?;
        }
        let name = caller.path(name).display().to_string();
        let mut command = caller.dsh_run(["--mode", "workspace-write", "--socket", &name, "--"]);
        let ended = finish(command.args(script(caller, text)))?;
        let refused = ended.status.code() == Some(125) || ended.stdout.contains("\"EACCES\"");
        problems.check(refused, || format!("{name}: {} {}", ended.stdout, ended.stderr));
        host.check_unreached(&mut problems);
        for left in ["workspace/agent", "workspace/sub", "workspace/up"] {
            let _ = fs::remove_file(caller.path(left));
        }
        fs::remove_dir(caller.path("home/x"))?;
    }
    problems.verdict(&"")
}

/// What the caller itself cannot reach stays out of reach.
fn own_rights(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    let closed = &host.listeners[0];
    fs::set_permissions(&closed.name, fs::Permissions::from_mode(0o000))?;
    let text = format!("$P {}; exit 3", closed.attempt());
    let ran = Observed::run(caller, &["--socket", &closed.name], script(caller, &text))?;
    let root = caller.persona().is_root();
    let expected = if root { "connect ok" } else { "connect EACCES" };
    problems.equal("answer", ran.answer()?.as_str(), expected);
    ran.check_denials(&mut problems, "denials", &[]);
    problems.equal("connected", closed.connected(), usize::from(root));
    host.check_unreached(&mut problems);
    problems.verdict(&ran)
}
