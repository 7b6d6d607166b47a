//! Each operation on files that a command is denied, with the errno that the command itself got; and
//! the same where something else is in its way, which denies nothing.

use crate::outside::Outside;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, attempt, script, unconfined};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("operations::each", each);
    cases.extend(for_each_user("operations::between-roots", between_roots));
    cases.extend(for_each_user("operations::protected", protected));
    cases.extend(for_each_rung("operations::fifo", fifo));
    cases
}

/// An attempt, its errno, and the operation and path of the denial if there is one. Layer and errno
/// of each are those of the mount.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    ("openat @/outside/new WRONLY|CREAT 0644", "EROFS", "open write @/outside/new"),
    ("open @/outside/new RDONLY|CREAT 0644", "EROFS", "open write @/outside/new"),
    ("creat @/outside/new 0644", "EROFS", "open write @/outside/new"),
    ("openat @/outside/file WRONLY", "EROFS", "open write @/outside/file"),
    ("openat @/outside/file RDWR", "EROFS", "open write @/outside/file"),
    ("openat @/outside/file RDONLY|TRUNC", "EROFS", "open write @/outside/file"),
    ("openat @/outside/link/file WRONLY", "EROFS", "open write @/outside/full/file"),
    ("tmpfile @/outside @/outside/new 0600", "EROFS", "open write @/outside"),
    ("truncate @/outside/file", "EROFS", "truncate write @/outside/file"),
    ("mkdir @/outside/new 0755", "EROFS", "mkdir write @/outside/new"),
    ("mknodat @/outside/new regular 0644", "EROFS", "mknod write @/outside/new"),
    ("mknod @/outside/new fifo 0644", "EROFS", "mknod write @/outside/new"),
    ("symlink target @/outside/new", "EROFS", "symlink write @/outside/new"),
    ("link @/outside/file @/outside/new", "EROFS", "link write @/outside/new"),
    ("unlink @/outside/file", "EROFS", "unlink write @/outside/file"),
    ("unlink @/outside/link", "EROFS", "unlink write @/outside/link"),
    ("rmdir @/outside/empty", "EROFS", "rmdir write @/outside/empty"),
    ("rename @/outside/file @/outside/new", "EROFS", "rename write @/outside/file"),
    ("rename @/outside/file @/outside/other", "EROFS", "rename write @/outside/file"),
    ("rename @/outside/file @/outside/full EXCHANGE", "EROFS", "rename write @/outside/file"),
    ("chmod @/outside/file 0600", "EROFS", "chmod write @/outside/file"),
    ("fchmodat @/outside/link 0700", "EROFS", "chmod write @/outside/full"),
    ("fchmodat2 @/outside/file 0600", "EROFS", "chmod write @/outside/file"),
    ("chown @/outside/file {id} {id}", "EROFS", "chown write @/outside/file"),
    ("utimensat @/outside/file", "EROFS", "utimes write @/outside/file"),
    ("setxattr @/outside/file user.x", "EROFS", "setxattr write @/outside/file"),
    ("removexattr @/outside/file user.there", "EROFS", "removexattr write @/outside/file"),
    ("bind-path @/outside/new", "EROFS", "bind write @/outside/new"),
    // Something else is in the way too.
    ("openat @/outside/file WRONLY|CREAT|EXCL 0644", "EEXIST", ""),
    ("openat @/outside/full WRONLY", "EISDIR", ""),
    ("openat @/outside/missing WRONLY", "ENOENT", ""),
    ("openat @/outside/missing/new WRONLY|CREAT 0644", "ENOENT", ""),
    ("openat @/outside/file/new WRONLY|CREAT 0644", "ENOTDIR", ""),
    ("mkdir @/outside/full 0755", "EEXIST", ""),
    ("symlink target @/outside/link", "EEXIST", ""),
    ("link @/outside/missing @/outside/new", "ENOENT", ""),
    ("bind-path @/outside/file", "EADDRINUSE", ""),
    // What is refused on a read-only mount before it is refused as outside.
    ("unlink @/outside/missing", "EROFS", ""),
    ("rmdir @/outside/full", "EROFS", ""),
    ("rmdir @/outside/file", "EROFS", ""),
    ("unlink @/outside/full", "EROFS", ""),
    ("rename @/outside/file @/outside/full", "EROFS", ""),
    ("removexattr @/outside/file user.missing", "EROFS", ""),
    // What only reads.
    ("openat @/outside/file RDONLY", "ok", ""),
    ("openat @/outside/file RDONLY|CREAT 0644", "ok", ""),
    ("openat @/outside/full RDONLY|DIRECTORY", "ok", ""),
    ("open-only @/outside/file WRONLY|PATH", "ok", ""),
];

/// The scratch is the command's.
const SCRATCH: &[&str] = &[
    "openat /tmp/new WRONLY|CREAT 0644",
    "mkdir /tmp/dir 0755",
    "mknodat /dev/shm/fifo fifo 0644",
    "bind-path /tmp/socket",
    "rename /tmp/new /tmp/dir/new",
    "chmod /tmp/dir/new 0600",
    "unlink /tmp/dir/new",
    "rmdir /tmp/dir",
];

fn each(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let id = caller.persona().id().to_string();
    let outside = prepared(caller)?;
    for (text, errno, denial) in ATTEMPTS {
        let words = attempt(caller, &text.replace("{id}", &id));
        let ran = Observed::run(caller, &["--mode", mode], words)?;
        let answer = ran.answer()?;
        let got = answer.split(' ').nth(1).unwrap_or_default().trim_end_matches(':');
        problems.equal(text, got, errno);
        let expected = format!("{denial} EROFS mount dsh-probe 1");
        let expected = [expected.as_str()];
        ran.check_denials(&mut problems, text, if denial.is_empty() { &[] } else { &expected });
    }
    let scratch: String = SCRATCH.iter().map(|text| format!("$P {text}\n")).collect();
    let ran =
        Observed::run(caller, &["--mode", mode], script(caller, &scratch.replace('|', "\\|")))?;
    ran.check_denials(&mut problems, "scratch", &[]);
    let refused = ran.answers()?.into_iter().filter(|answer| !answer.contains(" ok"));
    problems.equal("refused in the scratch", refused.collect(), Vec::new());
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// With an extended attribute to remove.
fn prepared(caller: &Caller) -> std::io::Result<Outside> {
    let outside = Outside::of(caller)?;
    let ended = unconfined(caller, "setxattr @/outside/file user.there")?;
    assert_eq!(ended, "setxattr ok");
    outside.again()
}

/// Two writable roots are two mounts.
fn between_roots(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    caller.make_dir("second")?;
    caller.make_file("workspace/file", "")?;
    let second = caller.path("second").display().to_string();
    let options = ["--mode", "workspace-write", "--writable", &second];
    for (text, denial) in [
        ("rename file @/second/file", "rename write @/second/file EXDEV mount dsh-probe 1"),
        ("link file @/second/file", "link write @/second/file EXDEV mount dsh-probe 1"),
    ] {
        let ran = Observed::run(caller, &options, attempt(caller, text))?;
        ran.check_denials(&mut problems, text, &[denial]);
        problems.check(ran.answer()?.contains("EXDEV"), || format!("{text}: {ran:?}"));
    }
    problems.verdict(&options)
}

/// Part of a writable root, and kept from being written.
fn protected(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    caller.make_dir("workspace/hooks")?;
    let options = ["--mode", "workspace-write", "--protect", "hooks"];
    let ran = Observed::run(caller, &options, ["sh", "-c", "touch hooks/x; touch x"])?;
    let denial = "open write @/workspace/hooks/x EROFS mount touch 1";
    ran.check_denials(&mut problems, "protected", &[denial]);
    let remedy = ran.facts.denials.first().and_then(|denial| denial.remedy.as_deref());
    problems.contains("remedy", remedy.unwrap_or_default(), "--protect");
    problems.verdict(&ran)
}

/// A fifo of the host's is no file of a mount: Landlock keeps it from being written, at once. Nobody
/// reads it, so that whoever opened it would wait, the observer too.
fn fifo(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "mkfifo /tmp/own; echo x >/tmp/own & own=$!
        for f in $T/outside/fifo $T/outside/fifo; do echo x 2>/dev/null >$f; done
        touch $T/outside/new; cat /tmp/own; wait $own";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let denials = [
        "open write @/outside/fifo EACCES landlock sh 2",
        "open write @/outside/new EROFS mount touch 1",
    ];
    ran.check_denials(&mut problems, "denials", &denials);
    problems.equal("stdout", ran.stdout.as_str(), "x\n");
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}
