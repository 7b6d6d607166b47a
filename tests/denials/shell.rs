//! What a shell is denied, and what only looks like it.

use std::fs;

use crate::outside::{Outside, check_absent};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, script};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(for_each_user("shell::four", four));
    cases.extend(for_each_rung("shell::four-of-its-own", four_of_its_own));
    cases.extend(for_each_user("shell::a-copy-beside-its-original", copy));
    cases.extend(for_each_rung("shell::not-denied", not_denied));
    cases.extend(for_each_user("shell::denied-and-succeeded", succeeded));
    cases
}

/// Of the host's own files an ordinary user may change none anyway.
fn for_root<'a>(caller: &Caller, denials: &'a [&'a str]) -> &'a [&'a str] {
    if caller.persona().is_root() { denials } else { &[] }
}

fn four(caller: &Caller) -> Verdict {
    let text = "echo x >/etc/f 2>/dev/null; mkdir /opt/q 2>/dev/null; \
                rm -f /etc/hostname 2>/dev/null; mv /etc/passwd /etc/p 2>/dev/null; false";
    let mut problems = Problems::default();
    let before = [fs::read("/etc/passwd")?, fs::read("/etc/hostname")?];
    let ran = Observed::run(caller, &["--mode", "read-only"], ["sh", "-c", text])?;
    let denials = [
        "open write /etc/f EROFS mount sh 1",
        "mkdir write /opt/q EROFS mount mkdir 1",
        "unlink write /etc/hostname EROFS mount rm 1",
        "rename write /etc/passwd EROFS mount mv 1",
    ];
    ran.check_denials(&mut problems, "denials", for_root(caller, &denials));
    problems.equal("status", ran.status, 1);
    problems.equal("denied", ran.facts.denied, Some(caller.persona().is_root()));
    check_absent(&mut problems, &["/etc/f", "/opt/q", "/etc/p"]);
    let after = [fs::read("/etc/passwd")?, fs::read("/etc/hostname")?];
    problems.check(before == after, || "files of the host have changed".to_owned());
    problems.verdict(&ran)
}

/// The same among the caller's own files, where nothing but the sandbox refuses.
fn four_of_its_own(caller: &Caller, mode: &str) -> Verdict {
    let text = "cd $T/outside; echo x 2>/dev/null >new; mkdir new; rm -f file; mv file p; exit 7";
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let denials = [
        "open write @/outside/new EROFS mount sh 1",
        "mkdir write @/outside/new EROFS mount mkdir 1",
        "unlink write @/outside/file EROFS mount rm 1",
        "rename write @/outside/file EROFS mount mv 1",
    ];
    ran.check_denials(&mut problems, "denials", &denials);
    problems.equal("status", ran.status, 7);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

fn copy(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let text = "cd /etc; cat passwd > ../etc/copy";
    let ran = Observed::run(caller, &[], ["sh", "-c", text])?;
    let denials = ["open write /etc/copy EROFS mount sh 1"];
    ran.check_denials(&mut problems, "denials", for_root(caller, &denials));
    problems.check(ran.status != 0, || "it succeeded".to_owned());
    check_absent(&mut problems, &["/etc/copy"]);
    problems.verdict(&ran)
}

/// Failures that have nothing to do with the sandbox, whatever they say.
fn not_denied(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for text in [
        "mkdir /tmp/sandbox; find /tmp/sandbox /nonexist; echo landlock seccomp \"Permission denied\"; exit 1",
        "grep -q zz /etc/passwd",
        "cat /root/x",
        "echo EROFS: Read-only file system, Operation not permitted >&2; exit 126",
        "rm /etc/nonexist",
        "rmdir /etc",
        "mkdir /etc",
        "mkdir /nonexist/new",
        "rm -d $T/workspace/..",
        "ln -s a /dev/shm/a; ln -s a /dev/shm/a",
        "exec /nonexist",
        "echo x >/dev/null >/dev/zero >/dev/stderr >/dev/fd/2 >/proc/self/fd/1; false",
        "kill -KILL $$",
    ] {
        let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
        ran.check_denials(&mut problems, text, &[]);
        problems.check(ran.status != 0, || format!("{text} succeeded"));
    }
    if mode == "workspace-write" {
        let text = "mkdir sandbox; find sandbox /nonexist; \
                    echo landlock seccomp \"Permission denied\"; exit 1";
        let ran = Observed::run(caller, &["--mode", mode], ["sh", "-c", text])?;
        ran.check_denials(&mut problems, text, &[]);
    }
    problems.verdict(&mode)
}

/// Listed, and not what the command failed of: it did not fail.
fn succeeded(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let text = "touch /etc/x 2>/dev/null; true";
    let ran = Observed::run(caller, &[], ["sh", "-c", text])?;
    problems.equal("status", ran.status, 0);
    problems.equal("denied", ran.facts.denied, Some(false));
    let denials = ["open write /etc/x EROFS mount touch 1"];
    ran.check_denials(&mut problems, "denials", for_root(caller, &denials));
    check_absent(&mut problems, &["/etc/x"]);
    problems.verdict(&ran)
}
