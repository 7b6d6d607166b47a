//! How much is watched: what each level sees and what not. What is refused is the same on all.

use dsh_facts::{DenialSource, Layer, Level, Observe, State};

use crate::outside::{HostSocket, Outside};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::fixture::Fixture;
use crate::support::observed::{CONFINED, Observed, script, staged_script};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Stage};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("levels::each", each);
    cases.extend(for_each_rung("levels::off", off));
    cases.extend(for_each_rung("levels::default", default));
    for uid in [0, 65534] {
        let name = format!("levels::impossible::{uid}");
        cases.push(Case::new(name, move |programs| impossible(programs, uid)));
    }
    cases
}

const TEXT: &str = "exec 5<$T/outside/file; $P fchmod 5 0600; $P chmod $T/outside/file 0600
    $P openat $T/outside/new WRONLY\\|CREAT 0644; $P unix-connect $T/home/socket STREAM
    $P unshare NEWUSER; exit 6";

const SOCKETS: [&str; 2] = [
    "connect connect @/home/socket EACCES observer dsh-probe 1",
    "unshare - - EPERM seccomp dsh-probe 1",
];
const PATHS: [&str; 1] = ["open write @/outside/new EROFS mount dsh-probe 1"];

fn chmod(times: u32) -> String {
    format!("chmod write @/outside/file EROFS mount dsh-probe {times}")
}

fn each(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let socket = HostSocket::of(caller)?;
    let [by_path, by_descriptor] = [chmod(1), chmod(2)];
    let paths = [&SOCKETS[..], &PATHS, &[&by_path]].concat();
    let all = [&SOCKETS[..], &PATHS, &[&by_descriptor]].concat();
    for (level, denials) in
        [(Observe::Sockets, &SOCKETS[..]), (Observe::Paths, &paths), (Observe::All, &all)]
    {
        let options = ["--mode", mode, "--observe", level.as_str()];
        let ran = Observed::run(caller, &options, script(caller, TEXT))?;
        problems.equal("status", ran.status, 6);
        problems.equal("level", ran.facts.observe, Some(level));
        ran.check_denials(&mut problems, level.as_str(), denials);
        let answers =
            ["fchmod EROFS", "chmod EROFS", "openat EROFS", "connect EACCES", "unshare EPERM"];
        problems.equal("answers", ran.answers()?, answers.map(str::to_owned).to_vec());
    }
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// Nothing is watched: unix sockets cannot be made, but in connected pairs, and the rest is refused
/// as ever.
fn off(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "$P socket UNIX STREAM 0; $P socket UNIX SEQPACKET 0; $P socket UNIX DGRAM 0
        $P socketpair UNIX STREAM; $P socket INET STREAM 0; $P chmod $T/outside/file 0600
        $P unshare NEWUSER; $P mkdir $T/outside/new 0755; exit 6";
    let ran = Observed::run(caller, &["--mode", mode, "--observe", "off"], script(caller, text))?;
    let answers = [
        "socket EACCES",
        "socket EACCES",
        "socket E",
        "socketpair ok",
        "socket ok",
        "chmod EROFS",
        "unshare EPERM",
        "mkdirat EROFS",
    ];
    let got = ran.answers()?;
    problems.equal("answers", got.len(), answers.len());
    for (got, expected) in got.iter().zip(answers) {
        problems.check(got.starts_with(expected), || format!("{got}, not {expected}"));
    }
    problems.equal("status", ran.status, 6);
    check_unavailable(&mut problems, &ran);
    problems.equal("observer", ran.layer(Layer::Observer), None);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

/// Nothing is known, and nothing is open for that.
fn check_unavailable(problems: &mut Problems, ran: &Observed) {
    problems.equal("source", ran.facts.denial_source, DenialSource::Unavailable);
    problems.equal("denied", ran.facts.denied, None);
    problems.equal("observe", ran.facts.observe, None);
    problems.equal("denials", ran.denials(), Vec::new());
    problems.equal("dropped", ran.facts.denials_dropped, 0);
    let level = ran.facts.enforcement.as_ref().map(|enforcement| enforcement.level);
    problems.equal("level", level, Some(Level::Full));
}

/// A kernel that cannot tell anybody: the run goes on as with nothing watched, and says why.
fn impossible(programs: &Programs, uid: u32) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    for mode in CONFINED {
        let fixture = Fixture::new(uid)?;
        let text = "$P socket UNIX STREAM 0; $P socketpair UNIX STREAM; $P keyctl; exit 6";
        let [shell, option, text] = staged_script(programs, fixture.top(), text);
        let words = ["--mode", mode, "--", &shell, &option, &text];
        let ran = Stage::new(&["-N"], uid).run(programs, &fixture, &words)?;
        let ran = Observed::staged(ran, fixture.top())?;
        let answers = ["socket EACCES", "socketpair ok", "keyctl EPERM"];
        problems.equal("answers", ran.answers()?, answers.map(str::to_owned).to_vec());
        problems.equal("status", ran.status, 6);
        check_unavailable(&mut problems, &ran);
        problems.equal("observer", ran.layer(Layer::Observer), Some(State::Absent));
    }
    problems.verdict(&uid)
}

/// All in read-only, where what is seen fails anyway; paths in workspace-write.
fn default(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let ran = Observed::run(caller, &["--mode", mode], ["false"])?;
    let expected = if mode == "read-only" { Observe::All } else { Observe::Paths };
    problems.equal("observe", ran.facts.observe, Some(expected));
    let level = ran.facts.enforcement.as_ref().map(|enforcement| enforcement.level);
    problems.equal("level", level, Some(Level::Full));
    ran.check_denials(&mut problems, "nothing", &[]);
    problems.verdict(&ran)
}
