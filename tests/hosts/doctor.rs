//! `dsh-run doctor` says beforehand what a run would come to, and what is to be done about it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use dsh_facts::{ErrorCode, Gap, HostReport, Layer, ModeLevel, ModeReport, SandboxMode, VERSION};
use nix::libc;
use serde_json::Value;

use crate::remedies::EXPECTED;
use crate::support::caller::finish;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::Fixture;
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::schema::violations;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::{HOSTS, Host, NOTHING, USER};

const CONFINED: [SandboxMode; 2] = [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("doctor::every-expected-host-exists", |_| every_expected_host_exists()),
        Case::new("doctor::nothing", nothing),
        Case::new("doctor::failing-step", failing_step),
    ];
    for host in HOSTS {
        cases.push(Case::new(format!("doctor::{}", host.name), move |all| agrees(all, host)));
    }
    for persona in [Persona::ROOT, Persona::ordinary()] {
        let name = format!("doctor::here::{}", persona.label());
        cases.push(Case::new(name, move |programs| here(programs, persona)));
    }
    cases
}

fn every_expected_host_exists() -> Verdict {
    let mut problems = Problems::default();
    for expected in EXPECTED {
        let exists = HOSTS.iter().any(|host| host.name == expected.host);
        problems.check(exists, || format!("no host {}", expected.host));
    }
    problems.verdict(&())
}

/// The report is what the table of hosts says, what `explain` says, and what a run would state.
fn agrees(programs: &Programs, host: &Host) -> Verdict {
    if let Some(reason) = host.obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let fixture = Fixture::new(host.uid)?;
    let ran = call(programs, &host.stage(), &fixture, &["doctor", "--json"])?;
    problems.equal("status", ran.status, 0);
    problems.equal("stderr", ran.stderr.as_str(), "");
    problems.equal("left behind", ran.left.as_str(), "");
    let report = read(programs, &mut problems, &ran.stdout)?;
    for (layer, errno) in host.absent {
        let refused = report.steps.iter().filter(|step| !step.offered);
        let step = refused.filter(|step| step.step == *layer);
        let errnos: Vec<_> = step.map(|step| step.errno.as_deref()).collect();
        problems.equal(&format!("{layer}"), errnos, vec![Some(*errno)]);
    }
    for mode in CONFINED {
        let one = of_mode(&report, mode)?;
        let gaps: BTreeSet<String> = one.gaps.iter().map(|gap| gap.effect.clone()).collect();
        problems.equal("gaps", gaps, host.gaps(mode));
        problems.equal("network", one.network, Some(host.network));
        for layer in one.effects.iter().flat_map(|effect| &effect.governed_by) {
            let enforced = host.layers().iter().any(|line| {
                line.strip_prefix(layer.as_str()).is_some_and(|state| !state.contains("absent"))
            });
            problems.check(enforced, || format!("{mode}: {layer} governs and is not enforced"));
        }
        let explain = ["explain", "--json", "--mode", mode.as_str()];
        let plan = call(programs, &host.stage(), &fixture, &explain)?;
        let plan: Value = serde_json::from_str(&plan.stdout)?;
        let explained: Vec<Gap> = serde_json::from_value(plan["gaps"].clone())?;
        problems.equal("gaps as explained", explained, one.gaps.clone());
    }
    let people = call(programs, &host.stage(), &fixture, &["doctor"])?;
    problems.equal("status without --json", people.status, 0);
    check_text(&mut problems, &report, &people.stdout);
    check_remedies(&mut problems, programs, host.name, &report, &people.stdout);
    problems.verdict(&(ran.stdout, people.stdout))
}

fn check_remedies(
    problems: &mut Problems,
    programs: &Programs,
    host: &str,
    report: &HostReport,
    text: &str,
) {
    let program = programs.dsh_run();
    for expected in EXPECTED.iter().filter(|expected| expected.host == host) {
        let causes = report.steps.iter().filter(|step| step.step == expected.step);
        let mut causes = causes.flat_map(|step| &step.causes);
        let Some(found) = causes.find(|one| one.cause.contains(expected.cause)) else {
            problems.check(false, || format!("no cause {:?}", expected.cause));
            continue;
        };
        problems.equal(expected.cause, found.tell.is_none(), expected.known);
        problems.contains("text", text, &found.cause);
        for part in expected.remedy {
            let part = part.replace("PROGRAM", &program.to_string_lossy());
            problems.contains("remedy", &found.remedy, &part);
            problems.contains("text", text, &part);
        }
    }
}

/// Neither confined mode runs: 2. There is no host for 1, on which only one runs: both stand on the
/// same row of the ladder.
fn nothing(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let mut problems = Problems::default();
    let (stage, fixture) = (Stage::new(NOTHING, USER), Fixture::new(USER)?);
    let ran = call(programs, &stage, &fixture, &["doctor", "--json"])?;
    problems.equal("status", ran.status, 2);
    problems.equal("stderr", ran.stderr.as_str(), "");
    let report = read(programs, &mut problems, &ran.stdout)?;
    for mode in CONFINED {
        let one = of_mode(&report, mode)?;
        problems.equal("level", one.level, ModeLevel::Refused);
        problems.equal("network", one.network, None);
        let code = one.error.as_ref().map(|error| error.code);
        problems.equal("code", code, Some(ErrorCode::SandboxUnavailable));
    }
    let refused = |layer, errno| {
        let step = report.steps.iter().find(|step| step.step == layer);
        step.is_some_and(|step| step.errno.as_deref() == Some(errno) && !step.causes.is_empty())
    };
    problems.check(refused(Layer::UserNamespace, "EPERM"), || "user namespaces".to_owned());
    problems.check(refused(Layer::Landlock, "ENOSYS"), || "Landlock".to_owned());
    let people = call(programs, &stage, &fixture, &["doctor"])?;
    problems.equal("status without --json", people.status, 2);
    check_text(&mut problems, &report, &people.stdout);
    for part in ["EPERM", "ENOSYS", "seccomp=unconfined", "CONFIG_SECURITY_LANDLOCK=y"] {
        problems.contains("text", &people.stdout, part);
    }
    problems.verdict(&(ran.stdout, people.stdout))
}

/// A step that fails in a way that says nothing about the host: the doctor itself has failed.
fn failing_step(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let rule = format!("{}:{}", libc::SYS_mount_setattr, libc::EIO);
    let (stage, fixture) = (Stage::new(&["-E", &rule], USER), Fixture::new(USER)?);
    let ran = call(programs, &stage, &fixture, &["doctor", "--json"])?;
    let mut problems = Problems::default();
    problems.equal("status", ran.status, 125);
    problems.equal("stdout", ran.stdout.as_str(), "");
    problems.equal("lines on stderr", ran.stderr.lines().count(), 1);
    for part in ["dsh-run: ", "mount", "mount_setattr", "EIO", "nothing about the host"] {
        problems.contains("stderr", &ran.stderr, part);
    }
    problems.verdict(&ran)
}

/// On the machine itself, whatever it is: the status follows from the report.
fn here(programs: &Programs, persona: Persona) -> Verdict {
    if let Some(reason) = persona.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(persona.id())?;
    let mut problems = Problems::default();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(programs.dsh_run());
        command.args(arguments).current_dir(fixture.workspace()).stdin(Stdio::null());
        persona.dress(&mut command);
        finish(&mut command)
    };
    let ran = run(&["doctor", "--json"])?;
    problems.equal("stderr", ran.stderr.as_str(), "");
    let report = read(programs, &mut problems, &ran.stdout)?;
    let refused = report.modes.iter().filter(|mode| mode.level == ModeLevel::Refused).count();
    problems.equal("status", ran.status.code(), i32::try_from(refused).ok());
    problems.equal("uid", report.uid, persona.id());
    let people = run(&["doctor"])?;
    problems.equal("status without --json", people.status.code(), ran.status.code());
    check_text(&mut problems, &report, &people.stdout);
    problems.verdict(&(ran.stdout, people.stdout))
}

/// Reads a report, and checks what holds of every one.
fn read(
    programs: &Programs,
    problems: &mut Problems,
    text: &str,
) -> Result<HostReport, std::io::Error> {
    let value: Value = serde_json::from_str(text)?;
    let printed = finish(Command::new(programs.dsh_run()).arg("schema"))?;
    let schema = serde_json::from_str::<Value>(&printed.stdout)?["doctor"].take();
    problems.equal("against the schema", violations(&schema, &schema, &value, ""), Vec::new());
    let report: HostReport = serde_json::from_value(value)?;
    problems.equal("version", report.version, VERSION);
    let modes: Vec<SandboxMode> = report.modes.iter().map(|one| one.mode).collect();
    problems.equal("modes", modes, SandboxMode::ALL.to_vec());
    for step in &report.steps {
        problems.equal("an errno where a step is refused", step.errno.is_none(), step.offered);
        let explained = step.offered || step.needs.is_some() || !step.causes.is_empty();
        problems.check(explained, || format!("refused without a cause: {step:?}"));
    }
    for mode in &report.modes {
        check_mode(problems, mode);
    }
    Ok(report)
}

fn check_mode(problems: &mut Problems, one: &ModeReport) {
    let ungoverned: Vec<&str> = one
        .effects
        .iter()
        .filter(|effect| effect.governed_by.is_empty())
        .map(|effect| effect.effect.as_str())
        .collect();
    let gaps: Vec<&str> = one.gaps.iter().map(|gap| gap.effect.as_str()).collect();
    problems.equal("effects without a layer are the gaps", ungoverned, gaps);
    for gap in &one.gaps {
        let said = [&gap.reason, &gap.remedy].iter().all(|text| !text.is_empty());
        problems.check(said, || format!("a gap that says too little: {gap:?}"));
    }
    let level = match (one.mode.confines(), &one.error, one.gaps.is_empty()) {
        (false, ..) => ModeLevel::Unconfined,
        (true, Some(_), _) => ModeLevel::Refused,
        (true, None, true) => ModeLevel::Full,
        (true, None, false) => ModeLevel::Partial,
    };
    problems.equal("level", one.level, level);
    let promises = matches!(level, ModeLevel::Full | ModeLevel::Partial);
    problems.equal("has effects", !one.effects.is_empty(), promises);
}

/// The text has all of it, in lines that fit a terminal up to where sentences begin.
fn check_text(problems: &mut Problems, report: &HostReport, text: &str) {
    problems.contains("text", text, &report.kernel);
    problems.contains("text", text, "danger-full-access  confines nothing");
    for mode in report.modes.iter().filter(|mode| mode.mode.confines()) {
        let level = format!("{:?}", mode.level).to_lowercase();
        problems.contains("text", text, &format!("{}: {level}", mode.mode));
        for gap in &mode.gaps {
            problems.contains("text", text, &gap.reason);
        }
        for effect in &mode.effects {
            let mut lines = text.lines().filter(|line| line.starts_with(&effect.effect));
            let shown = if effect.governed_by.is_empty() {
                "GAP".to_owned()
            } else {
                effect.governed_by.join(" ")
            };
            problems.check(lines.any(|line| line.contains(&shown)), || format!("{effect:?}"));
        }
    }
    for cause in report.steps.iter().flat_map(|step| &step.causes) {
        problems.contains("text", text, &cause.remedy);
    }
    let colour = text.contains('\u{1b}');
    problems.check(!colour, || "colour".to_owned());
}

fn of_mode(report: &HostReport, mode: SandboxMode) -> std::io::Result<&ModeReport> {
    let found = report.modes.iter().find(|one| one.mode == mode);
    found.ok_or_else(|| std::io::Error::other(format!("no {mode}")))
}

fn call(
    programs: &Programs,
    stage: &Stage,
    fixture: &Fixture,
    arguments: &[&str],
) -> std::io::Result<Ran> {
    let words = std::iter::once(programs.dsh_run().into_os_string());
    stage.watch(programs, fixture, words.chain(arguments.iter().map(OsString::from)))
}
