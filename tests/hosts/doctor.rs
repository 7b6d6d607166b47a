//! `dsh-run doctor` says beforehand what a run would come to.

use dsh_facts::SandboxMode;
use nix::libc;
use serde_json::Value;

use crate::support::cases::{Case, Verdict};
use crate::support::fixture::Fixture;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::{HOSTS, Host, NOTHING, USER};

pub(crate) fn cases() -> Vec<Case> {
    let per_host = HOSTS.iter().map(|host| {
        Case::new(format!("doctor::{}", host.name), move |programs| agrees(programs, host))
    });
    let others =
        [Case::new("doctor::nothing", nothing), Case::new("doctor::failing-step", failing_step)];
    per_host.chain(others).collect()
}

/// Both confined rungs run, with exactly the gaps that a run states.
fn agrees(programs: &Programs, host: &Host) -> Verdict {
    if let Some(reason) = host.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let ran = doctor(programs, &host.stage(), &["--json"])?;
    problems.equal("status", ran.status, 0);
    problems.equal("stderr", ran.stderr.as_str(), "");
    problems.equal("left behind", ran.left.as_str(), "");
    let report: Value = serde_json::from_str(&ran.stdout)?;
    for (rung, mode) in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite].iter().enumerate() {
        let rung = &report["modes"][rung];
        let gaps = host.gaps(*mode);
        problems.equal("mode", rung["mode"].as_str(), Some(mode.as_str()));
        let level = if gaps.is_empty() { "full" } else { "partial" };
        problems.equal("level", rung["level"].as_str(), Some(level));
        let listed = rung["gaps"].as_array().into_iter().flatten();
        let listed: Vec<_> =
            listed.filter_map(|gap| gap["effect"].as_str()).map(str::to_owned).collect();
        problems.equal("gaps", listed.into_iter().collect(), gaps);
    }
    let people = doctor(programs, &host.stage(), &[])?;
    problems.equal("status without --json", people.status, 0);
    problems.contains("text", &people.stdout, "read-only");
    problems.verdict(&(ran, people))
}

/// Neither rung runs: 2. (1 would be a host on which only one does; there is none so far.)
fn nothing(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let stage = Stage::new(NOTHING, USER);
    let ran = doctor(programs, &stage, &["--json"])?;
    problems.equal("status", ran.status, 2);
    problems.equal("stderr", ran.stderr.as_str(), "");
    let report: Value = serde_json::from_str(&ran.stdout)?;
    for rung in report["modes"].as_array().into_iter().flatten() {
        problems.equal("level", rung["level"].as_str(), Some("refused"));
        problems.contains("error", rung["error"].as_str().unwrap_or_default(), "EPERM");
    }
    let steps = report["steps"].as_array().into_iter().flatten();
    let refused: Vec<_> =
        steps.filter(|step| step["offered"] == false).map(|step| &step["errno"]).collect();
    problems.check(refused.contains(&&Value::from("ENOSYS")), || format!("errnos {refused:?}"));
    let people = doctor(programs, &stage, &[])?;
    problems.equal("status without --json", people.status, 2);
    problems.contains("text", &people.stdout, "refused");
    problems.verdict(&(ran, people))
}

/// A step that fails in a way that says nothing about the host: the doctor itself has failed.
fn failing_step(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let rule = format!("{}:{}", libc::SYS_mount_setattr, libc::EIO);
    let ran = doctor(programs, &Stage::new(&["-E", &rule], USER), &["--json"])?;
    let mut problems = Problems::default();
    problems.equal("status", ran.status, 125);
    problems.equal("stdout", ran.stdout.as_str(), "");
    problems.equal("lines on stderr", ran.stderr.lines().count(), 1);
    for part in ["dsh-run: ", "mount", "mount_setattr", "EIO"] {
        problems.contains("stderr", &ran.stderr, part);
    }
    problems.verdict(&ran)
}

fn doctor(programs: &Programs, stage: &Stage, options: &[&str]) -> std::io::Result<Ran> {
    let fixture = Fixture::new(stage.uid)?;
    let words = [programs.dsh_run().into_os_string(), "doctor".into()];
    stage.watch(programs, &fixture, words.into_iter().chain(options.iter().map(Into::into)))
}
