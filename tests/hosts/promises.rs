//! On each host: what is claimed is exactly what the host allows, and what is promised holds.

use std::fs;

use dsh_facts::{Network, SandboxMode};
use serde::Deserialize;

use crate::claims;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{CONTENT, Fixture};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::{HOSTS, Host};

const MODES: [SandboxMode; 2] = [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new("promises::the-stage-sees-what-is-left", sees_what_is_left)];
    cases.push(Case::new("promises::processes-of-another-user", of_another_user));
    for host in HOSTS {
        for mode in MODES {
            let name = format!("promises::{}::{mode}", host.name);
            cases.push(Case::new(name, move |programs| holds(programs, host, mode)));
        }
        let name = format!("promises::{}::network-off", host.name);
        cases.push(Case::new(name, move |programs| network_off(programs, host)));
    }
    cases
}

/// Without this, that nothing is left would prove nothing.
fn sees_what_is_left(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(0)?;
    let script = "sleep 300 & mount -t tmpfs new /mnt; exit 7";
    let ran = Stage::new(&[], 0).watch(programs, &fixture, ["sh", "-c", script])?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 7);
    problems.contains("left behind", &ran.left, "(sleep) ");
    problems.contains("left behind", &ran.left, "have changed");
    problems.verdict(&ran)
}

/// Where only signals end what is left, a root without CAP_KILL could not end a daemon that has
/// become somebody else: the command must not keep CAP_SETUID.
fn of_another_user(programs: &Programs) -> Verdict {
    // Docker's default without CAP_KILL.
    const OPTIONS: &[&str] = &["-s", "docker", "-m", "-c", "a80425db"];
    const SCRIPT: &str = r#"
setpriv --reuid 1000 --clear-groups sh -c 'setsid sleep 300 >/dev/null &' 2>/dev/null
exit 7"#;
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(0)?;
    let ran = Stage::new(OPTIONS, 0).run(programs, &fixture, &["--", "sh", "-c", SCRIPT])?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 7);
    problems.equal("left behind", ran.left.as_str(), "");
    problems.verdict(&ran)
}

/// Forbidden attempts, two daemons that nobody but the sandbox would end, and a status of its own.
const SCRIPT: &str = r#"
probe=$1 outside=$2 workspace=$3
"$probe" openat "$outside/new" 'WRONLY|CREAT' 0644
"$probe" openat "$outside/file" WRONLY
"$probe" fchmodat "$outside/file" 0600
"$probe" openat "$workspace/new" 'WRONLY|CREAT' 0644
"$probe" unshare NEWUSER
"$probe" socket INET STREAM 0
(setsid sleep 300 >/dev/null 2>&1 &)
(setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 300; done' >/dev/null 2>&1 &)
exit 7
"#;

fn holds(programs: &Programs, host: &Host, mode: SandboxMode) -> Verdict {
    if let Some(reason) = host.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(host.uid)?;
    let ran = run(programs, host, &fixture, &["--mode", mode.as_str()], SCRIPT)?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 7);
    problems.equal("left behind", ran.left.as_str(), "");
    problems.equal("stderr", ran.stderr.as_str(), "");

    let facts = ran.facts()?;
    let enforcement = claims::check_shape(&mut problems, facts);
    problems.equal("mode", facts.mode, mode);
    problems.equal("network", facts.network, host.network);
    problems.equal("layers", claims::layers(&enforcement), host.layers());
    problems.equal("gaps", claims::gaps(&enforcement), host.gaps(mode));
    problems.equal("code in the facts", facts.exit.and_then(|exit| exit.code), Some(7));

    let writes = mode == SandboxMode::WorkspaceWrite;
    let refused = if host.own_mounts() { "EROFS" } else { "EACCES" };
    let expected = [
        refused,
        refused,
        match (host.own_mounts(), writes) {
            (true, _) => "EROFS",
            (false, true) if host.gaps(mode).contains("metadata") => "none",
            (false, _) => "EPERM",
        },
        if writes { "none" } else { refused },
        "EPERM",
        if host.network == Network::Off { "EAFNOSUPPORT" } else { "none" },
    ];
    problems.equal("the attempts", answers(&ran), expected.map(str::to_owned).to_vec());
    let new = fixture.workspace().join("new").exists();
    problems.equal("the workspace was written", new, writes);
    problems.equal("a new file outside", fixture.outside().join("new").exists(), false);
    problems.equal("the file outside", fs::read_to_string(fixture.file())?.as_str(), CONTENT);
    problems.verdict(&ran)
}

/// `off` can be had everywhere.
fn network_off(programs: &Programs, host: &Host) -> Verdict {
    const SCRIPT: &str = r#"
"$1" socket INET STREAM 0
"$1" socket INET DGRAM 0
"$1" connect-tcp 9
"#;
    if let Some(reason) = host.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(host.uid)?;
    let ran = run(programs, host, &fixture, &["--network", "off"], SCRIPT)?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    let facts = ran.facts()?;
    let enforcement = claims::check_shape(&mut problems, facts);
    problems.equal("network", facts.network, Network::Off);
    let mut gaps = host.gaps(SandboxMode::ReadOnly);
    // Nothing is lost that was asked for.
    gaps.remove("network");
    problems.equal("gaps", claims::gaps(&enforcement), gaps);
    let expected = if host.own_network() {
        // A network without a single interface that is up.
        ["none", "none", "ENETUNREACH"]
    } else {
        ["EAFNOSUPPORT"; 3]
    };
    problems.equal("the attempts", answers(&ran), expected.map(str::to_owned).to_vec());
    problems.verdict(&ran)
}

fn run(
    programs: &Programs,
    host: &Host,
    fixture: &Fixture,
    options: &[&str],
    script: &str,
) -> std::io::Result<Ran> {
    let (probe, outside, workspace) =
        (programs.dsh_probe(), fixture.outside(), fixture.workspace());
    let (probe, outside, workspace) =
        (probe.to_string_lossy(), outside.to_string_lossy(), workspace.to_string_lossy());
    let command = ["--", "sh", "-c", script, "attempts", &*probe, &*outside, &*workspace];
    let arguments: Vec<&str> = options.iter().copied().chain(command).collect();
    host.stage().run(programs, fixture, &arguments)
}

/// The probe's line of JSON.
#[derive(Deserialize)]
struct Answer {
    errno: Option<String>,
}

/// The errno of each attempt, or `none`.
fn answers(ran: &Ran) -> Vec<String> {
    let parse = |line: &str| match serde_json::from_str::<Answer>(line) {
        Ok(answer) => answer.errno.unwrap_or_else(|| "none".to_owned()),
        Err(_) => line.to_owned(),
    };
    ran.stdout.lines().map(parse).collect()
}
