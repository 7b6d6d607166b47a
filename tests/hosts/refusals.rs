//! Where a command must not run, it does not, and one line says why.

use dsh_facts::{ErrorCode, Outcome, SandboxMode};

use crate::support::cases::{Case, Verdict};
use crate::support::fixture::Fixture;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::{DOCKER_USER, NOTHING, USER};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in ["read-only", "workspace-write"] {
        for (name, more) in [("nothing", &[][..]), ("nothing-nor-notification", &["-N"])] {
            let options: Vec<&str> = NOTHING.iter().chain(more).copied().collect();
            cases.push(Case::new(format!("refusals::{name}::{mode}"), move |programs| {
                nothing_to_confine_with(programs, &Stage::new(&options, USER), mode)
            }));
        }
    }
    cases.push(Case::new("refusals::unconfined-needs-nothing", unconfined_needs_nothing));
    cases.push(Case::new("refusals::require-full", require_full));
    cases
}

/// What the command would leave if it ran.
const LEAVE_MARK: [&str; 3] = ["--", "touch", "mark"];

fn nothing_to_confine_with(programs: &Programs, stage: &Stage, mode: &str) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(stage.uid)?;
    let ran = stage.run(programs, &fixture, &[&["--mode", mode], &LEAVE_MARK[..]].concat())?;
    let mut problems = Problems::default();
    check_refusal(&mut problems, &ran, &fixture, ErrorCode::SandboxUnavailable)?;
    for part in [
        "user_namespace: unshare",
        "EPERM",
        "landlock_create_ruleset",
        "ENOSYS",
        "allow user names",
    ] {
        problems.contains("stderr", &ran.stderr, part);
    }
    let named = ran.stderr.matches("layer user_namespace").count();
    problems.equal("times that one refusal is named", named, 1);
    let error = ran.facts()?.error.as_ref();
    problems.equal("errno", error.and_then(|error| error.errno.as_deref()), Some("EPERM"));
    problems.check(error.is_some_and(|error| error.remedy.is_some()), || "no remedy".to_owned());
    problems.verdict(&ran)
}

/// The widest rung confines nothing and so runs anywhere; the same mark proves that it would have
/// been left above.
fn unconfined_needs_nothing(programs: &Programs) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(USER)?;
    let stage = Stage::new(NOTHING, USER);
    let mode = SandboxMode::DangerFullAccess.as_str();
    let ran = stage.run(programs, &fixture, &[&["--mode", mode], &LEAVE_MARK[..]].concat())?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    problems.equal("the mark", fixture.workspace().join("mark").exists(), true);
    problems.equal("enforcement", ran.facts()?.enforcement.clone(), None);
    problems.equal("denied", ran.facts()?.denied, Some(false));
    problems.verdict(&ran)
}

fn require_full(programs: &Programs) -> Verdict {
    if let Some(reason) = DOCKER_USER.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(USER)?;
    let options = ["--mode", "workspace-write", "--require", "full"];
    let stage = DOCKER_USER.stage();
    let ran = stage.run(programs, &fixture, &[&options[..], &LEAVE_MARK[..]].concat())?;
    let mut problems = Problems::default();
    check_refusal(&mut problems, &ran, &fixture, ErrorCode::PartialEnforcement)?;
    for effect in DOCKER_USER.gaps(SandboxMode::WorkspaceWrite) {
        problems.contains("stderr", &ran.stderr, &effect);
    }
    problems.verdict(&ran)
}

/// Checks that nothing ran, and that one line and the facts say so.
pub(crate) fn check_refusal(
    problems: &mut Problems,
    ran: &Ran,
    fixture: &Fixture,
    code: ErrorCode,
) -> std::io::Result<()> {
    problems.equal("exit status", ran.status, 125);
    problems.equal("lines on stderr", ran.stderr.lines().count(), 1);
    problems.check(ran.stderr.starts_with("dsh-run: "), || "not from dsh-run".to_owned());
    problems.equal("stdout", ran.stdout.as_str(), "");
    problems.equal("left behind", ran.left.as_str(), "");
    problems.equal("the mark", fixture.workspace().join("mark").exists(), false);
    let facts = ran.facts()?;
    problems.equal("outcome", facts.outcome, Outcome::Refused);
    problems.equal("code", facts.error.as_ref().map(|error| error.code), Some(code));
    problems.equal("enforcement", facts.enforcement.clone(), None);
    problems.equal("exit", facts.exit, None);
    Ok(())
}
