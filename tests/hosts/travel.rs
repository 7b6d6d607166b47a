//! What of the caller a command has: umask, supplementary groups, resource limits.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nix::unistd::{Gid, Uid, chown};

use crate::support::cases::{Case, Verdict};
use crate::support::fixture::Fixture;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Stage, dsh_run};
use crate::table::{DOCKER_USER, USER};

/// With mounts and a user namespace, and without.
const STAGES: [(&str, &[&str]); 2] =
    [("bare", &[]), ("docker", &["-s", "docker", "-m", "-c", "docker"])];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, options) in STAGES {
        for uid in [0, USER] {
            cases.push(Case::new(format!("travel::umask-and-limits::{name}::{uid}"), move |all| {
                umask_and_limits(all, &Stage::new(options, uid))
            }));
        }
        cases.push(Case::new(format!("travel::groups::{name}"), move |programs| {
            groups(programs, &Stage::new(options, 0))
        }));
    }
    cases
}

fn umask_and_limits(programs: &Programs, stage: &Stage) -> Verdict {
    const CALLER: &str = r#"umask 027; ulimit -n 77; ulimit -f 1000; ulimit -s 4096; exec "$@""#;
    const COMMAND: &str = "umask; ulimit -n; ulimit -f; ulimit -s; touch new";
    if let Some(reason) = DOCKER_USER.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(stage.uid)?;
    let command = ["--mode", "workspace-write", "--", "sh", "-c", COMMAND];
    let mut words: Vec<OsString> = ["sh", "-c", CALLER, "caller"].map(Into::into).into();
    words.extend(dsh_run(programs, &fixture, &command));
    let ran = stage.watch(programs, &fixture, words)?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    problems.equal("stdout", ran.stdout.as_str(), "0027\n77\n1000\n4096\n");
    let new = fs::metadata(fixture.workspace().join("new"))?;
    problems.equal("mode of a new file", new.mode() & 0o7777, 0o640);
    problems.equal("owner of a new file", new.uid(), stage.uid);
    problems.verdict(&ran)
}

/// A group that no map names still opens its files.
fn groups(programs: &Programs, stage: &Stage) -> Verdict {
    const GROUP: u32 = 54321;
    if let Some(reason) = DOCKER_USER.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(USER)?;
    chown(&fixture.file(), Some(Uid::from_raw(0)), Some(Gid::from_raw(GROUP)))?;
    fs::set_permissions(fixture.file(), fs::Permissions::from_mode(0o640))?;
    let become_user = [
        "setpriv".to_owned(),
        format!("--reuid={USER}"),
        format!("--regid={USER}"),
        format!("--groups={USER},{GROUP}"),
    ];
    let mut words: Vec<OsString> = become_user.into_iter().map(Into::into).collect();
    let file = fixture.file();
    words.extend(dsh_run(programs, &fixture, &["--", "cat", &file.to_string_lossy()]));
    let ran = stage.watch(programs, &fixture, words)?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    problems.equal("stdout", ran.stdout.as_str(), crate::support::fixture::CONTENT);
    problems.verdict(&ran)
}
