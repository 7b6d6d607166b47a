//! Hidden and protected paths: mounts keep them, and a host without any refuses them.

use std::fs;

use dsh_facts::{ErrorCode, SandboxMode};
use nix::libc;

use crate::refusals::check_refusal;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{CONTENT, Fixture, own};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;
use crate::support::stage::{Programs, Stage};
use crate::table::{HOSTS, Host, USER};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for host in HOSTS {
        let mut add = |name: &str, test: fn(&Programs, &Host) -> Verdict| {
            let name = format!("carve_outs::{name}::{}", host.name);
            cases.push(Case::new(name, move |programs| match host.obstacle() {
                Some(reason) => skip(reason),
                None => test(programs, host),
            }));
        };
        if host.own_mounts() {
            add("kept", |programs, host| kept(programs, &host.stage()));
        } else {
            add("refused", refused);
        }
        add("nothing-to-carve-out", nothing_to_carve_out);
    }
    // Linux 5.12 brought mount_setattr.
    let old_kernel = format!("{}:{}", libc::SYS_mount_setattr, libc::ENOSYS);
    for uid in [0, USER] {
        let stage = Stage::new(&["-E", &old_kernel], uid);
        cases.push(Case::new(format!("carve_outs::kept::old-kernel::{uid}"), move |programs| {
            match Stage::obstacle() {
                Some(reason) => skip(reason),
                None => kept(programs, &stage),
            }
        }));
    }
    cases
}

const OPTIONS: [&str; 8] =
    ["--mode", "workspace-write", "--hide", "link", "--hide", "../outside", "--protect", "conf"];

/// A secret in the workspace behind a link, and a protected file.
fn fixture(uid: u32) -> std::io::Result<Fixture> {
    let fixture = Fixture::new(uid)?;
    let workspace = fixture.workspace();
    fs::create_dir(workspace.join("keys"))?;
    fs::write(workspace.join("keys/secret"), CONTENT)?;
    fs::write(workspace.join("conf"), CONTENT)?;
    std::os::unix::fs::symlink("keys/secret", workspace.join("link"))?;
    for name in ["keys", "keys/secret", "conf"] {
        own(&workspace.join(name), uid)?;
    }
    Ok(fixture)
}

fn kept(programs: &Programs, stage: &Stage) -> Verdict {
    let fixture = fixture(stage.uid)?;
    let before = (Snapshot::of(&fixture.workspace())?, Snapshot::of(&fixture.outside())?);
    let attack = "cat link ../outside/file; echo x >conf; mv keys moved; rm link conf; cat conf";
    let ran = stage.run(programs, &fixture, &[&OPTIONS[..], &["-c", attack]].concat())?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    problems.equal("stdout", ran.stdout.as_str(), CONTENT);
    for (says, count) in [("Read-only file system", 1), ("Device or resource busy", 3)] {
        problems.equal(says, ran.stderr.matches(says).count(), count);
    }
    problems.equal("left behind", ran.left.as_str(), "");
    let facts = ran.facts()?;
    let path = |name: &str| fixture.top().join(name).to_string_lossy().into_owned();
    problems.equal("hidden", &facts.hidden, &vec![path("workspace/keys/secret"), path("outside")]);
    problems.equal("protected", &facts.protected, &vec![path("workspace/conf")]);
    let changes = [
        Snapshot::of(&fixture.workspace())?.changes_since(&before.0),
        Snapshot::of(&fixture.outside())?.changes_since(&before.1),
    ];
    problems.equal("changes to the host", changes, Default::default());
    problems.verdict(&ran)
}

fn refused(programs: &Programs, host: &Host) -> Verdict {
    for option in ["--hide", "--protect"] {
        let fixture = fixture(host.uid)?;
        let arguments = ["--mode", "workspace-write", option, "conf", "--", "touch", "mark"];
        let ran = host.stage().run(programs, &fixture, &arguments)?;
        let mut problems = Problems::default();
        check_refusal(&mut problems, &ran, &fixture, ErrorCode::SandboxUnavailable)?;
        for part in [
            "hidden and protected paths need mounts of the sandbox's own: layer ",
            "the command was not run; drop them, or allow user namespaces",
        ] {
            problems.contains("stderr", &ran.stderr, part);
        }
        let error = ran.facts()?.error.as_ref();
        let errno = error.and_then(|error| error.errno.clone());
        problems.check(errno.is_some(), || "no errno in the facts".to_owned());
        problems.contains("stderr", &ran.stderr, &errno.unwrap_or_default());
        problems.verdict(&ran)?;
    }
    Ok(libtest_mimic::Completion::Completed)
}

/// A profile that names what is not there, or what cannot be written anyway, works on every host.
fn nothing_to_carve_out(programs: &Programs, host: &Host) -> Verdict {
    let fixture = fixture(host.uid)?;
    let stage = host.stage();
    let told = "dsh-run: --hide none: nothing is there\n";
    for (options, protected, stderr) in [
        (&["--profile", "protect-vcs", "--hide", "none"][..], 0, told),
        (&["--mode", "read-only", "--protect", "conf"], 1, ""),
        (&["--mode", "workspace-write", "--protect", "../outside/file"], 1, ""),
    ] {
        let ran = stage.run(programs, &fixture, &[options, &["--", "cat", "conf"]].concat())?;
        let mut problems = Problems::default();
        problems.equal("stderr", ran.stderr.as_str(), stderr);
        problems.equal("stdout", ran.stdout.as_str(), CONTENT);
        let facts = ran.facts()?;
        let found = [facts.hidden.len(), facts.protected.len(), facts.missing.len()];
        let missing = if protected == 0 { 6 } else { 0 };
        problems.equal("hidden, protected, missing", found, [0, protected, missing]);
        problems.equal("mode", facts.mode == SandboxMode::ReadOnly, options[1] == "read-only");
        problems.verdict(&ran)?;
    }
    Ok(libtest_mimic::Completion::Completed)
}
