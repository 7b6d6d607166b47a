//! Every way to a hidden or protected place that an attacker might try, as data: what it gets, and
//! that the next run finds all in its place.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::caller::{Caller, finish};
use crate::support::snapshot::Snapshot;
use crate::support::suite::{Outcome, Stop, tests};

tests![every_attempt_fails_twice];

/// Hidden: keys/secret, by the link, and vault. Protected: hooks and conf.
const OPTIONS: [&str; 10] = [
    "--mode",
    "workspace-write",
    "--hide",
    "link",
    "--hide",
    "vault",
    "--protect",
    "hooks",
    "--protect",
    "conf",
];

/// An attempt of the probe, and the errno for an ordinary user and for root, who may open
/// anything and finds it empty.
const ATTEMPTS: &[(&str, &str, &str)] = &[
    // The hidden file, by its name.
    ("openat keys/secret RDONLY", "EACCES", "none"),
    ("openat keys/secret WRONLY", "EACCES", "EROFS"),
    ("openat keys/secret RDWR", "EACCES", "EROFS"),
    ("openat keys/secret WRONLY|TRUNC", "EROFS", "EROFS"),
    ("openat keys/secret WRONLY|CREAT 0644", "EACCES", "EROFS"),
    ("openat keys/secret WRONLY|CREAT|EXCL 0644", "EEXIST", "EEXIST"),
    ("truncate keys/secret", "EACCES", "EROFS"),
    ("chmod keys/secret 0777", "EROFS", "EROFS"),
    ("fchmodat2 keys/secret 0777", "EROFS", "EROFS"),
    ("chown keys/secret {id} {id}", "EROFS", "EROFS"),
    ("utimensat keys/secret", "EROFS", "EROFS"),
    ("setxattr keys/secret user.x", "EROFS", "EROFS"),
    ("unlink keys/secret", "EBUSY", "EBUSY"),
    ("relink /etc/passwd keys/secret", "EBUSY", "EBUSY"),
    ("rename keys/secret keys/moved", "EBUSY", "EBUSY"),
    ("rename keys/secret moved", "EXDEV", "EXDEV"),
    ("rename keys/other keys/secret", "EBUSY", "EBUSY"),
    ("rename keys/other keys/secret EXCHANGE", "EBUSY", "EBUSY"),
    ("rename keys/secret keys/other EXCHANGE", "EBUSY", "EBUSY"),
    ("link keys/secret keys/new", "EXDEV", "EXDEV"),
    ("link-by-descriptor keys/secret keys/new", "EXDEV", "EXDEV"),
    ("umount keys/secret", "EPERM", "EPERM"),
    ("open-by-handle keys/secret", "EPERM", "EPERM"),
    // By its other names.
    ("openat link RDONLY", "EACCES", "none"),
    ("openat {workspace}/keys/secret RDONLY", "EACCES", "none"),
    ("openat /proc/self/cwd/keys/secret RDONLY", "EACCES", "none"),
    ("openat /proc/self/root{workspace}/keys/secret RDONLY", "EACCES", "none"),
    ("openat /proc/{shell}/root{workspace}/keys/secret RDONLY", "EACCES", "none"),
    ("openat /proc/{shell}/cwd/keys/secret RDONLY", "EACCES", "none"),
    ("openat /proc/1/root{workspace}/keys/secret RDONLY", "EACCES", "EACCES"),
    ("openat /proc/1/cwd/keys/secret RDONLY", "EACCES", "EACCES"),
    ("openat /dev/fd/9/secret RDONLY", "EACCES", "none"),
    ("openat /proc/self/fd/9/secret WRONLY", "EACCES", "EROFS"),
    // What leads to it.
    ("unlink link", "EBUSY", "EBUSY"),
    ("relink /etc/passwd link", "EBUSY", "EBUSY"),
    ("rename link moved", "EBUSY", "EBUSY"),
    ("rename keys/other link", "EXDEV", "EXDEV"),
    ("rename file link", "EBUSY", "EBUSY"),
    ("rename file link EXCHANGE", "EBUSY", "EBUSY"),
    ("rename keys moved", "EBUSY", "EBUSY"),
    ("rename keys empty EXCHANGE", "EBUSY", "EBUSY"),
    ("rename empty keys", "EBUSY", "EBUSY"),
    ("rmdir keys", "EBUSY", "EBUSY"),
    ("plant-parent keys /etc", "EBUSY", "EBUSY"),
    ("rename {workspace} {workspace}-moved", "EROFS", "EROFS"),
    ("umount keys", "EPERM", "EPERM"),
    ("bind-over hooks keys", "EPERM", "EPERM"),
    // The hidden directory, and what was in it.
    ("openat vault RDONLY|DIRECTORY", "EACCES", "none"),
    ("openat vault/inner RDONLY", "EACCES", "ENOENT"),
    ("openat vault/new WRONLY|CREAT 0644", "EACCES", "EROFS"),
    ("mkdir vault/new 0755", "EACCES", "EROFS"),
    ("symlink /etc vault/new", "EACCES", "EROFS"),
    ("tmpfile vault vault/new 0644", "EROFS", "EROFS"),
    ("chmod vault 0777", "EROFS", "EROFS"),
    ("setxattr vault user.x", "EROFS", "EROFS"),
    ("rmdir vault", "EBUSY", "EBUSY"),
    ("rename vault moved", "EBUSY", "EBUSY"),
    ("rename empty vault", "EBUSY", "EBUSY"),
    ("rename vault empty EXCHANGE", "EBUSY", "EBUSY"),
    ("rename file vault/new", "EACCES", "EXDEV"),
    ("umount vault", "EPERM", "EPERM"),
    // The protected directory.
    ("openat hooks/hook RDONLY", "none", "none"),
    ("openat hooks/hook WRONLY", "EROFS", "EROFS"),
    ("openat hooks/hook RDONLY|TRUNC", "EROFS", "EROFS"),
    ("openat hooks/new WRONLY|CREAT 0644", "EROFS", "EROFS"),
    ("openat /proc/self/cwd/hooks/hook WRONLY", "EROFS", "EROFS"),
    ("openat /proc/{shell}/root{workspace}/hooks/hook WRONLY", "EROFS", "EROFS"),
    ("tmpfile hooks hooks/new 0644", "EROFS", "EROFS"),
    ("mkdir hooks/new 0755", "EROFS", "EROFS"),
    ("mknodat hooks/new fifo 0644", "EROFS", "EROFS"),
    ("symlink /etc hooks/new", "EROFS", "EROFS"),
    ("unlink hooks/hook", "EROFS", "EROFS"),
    ("rename hooks/hook hooks/moved", "EROFS", "EROFS"),
    ("rename file hooks/new", "EXDEV", "EXDEV"),
    ("link hooks/hook new", "EXDEV", "EXDEV"),
    ("link file hooks/new", "EROFS", "EROFS"),
    ("link-by-descriptor hooks/hook new", "EXDEV", "EXDEV"),
    ("chmod hooks/hook 0777", "EROFS", "EROFS"),
    ("chmod hooks 0777", "EROFS", "EROFS"),
    ("chown hooks {id} {id}", "EROFS", "EROFS"),
    ("utimensat hooks/hook", "EROFS", "EROFS"),
    ("setxattr hooks/hook user.x", "EROFS", "EROFS"),
    ("set-flags hooks/hook", "EROFS", "EROFS"),
    ("rename hooks moved", "EBUSY", "EBUSY"),
    ("rename empty hooks", "EBUSY", "EBUSY"),
    ("rmdir hooks", "EBUSY", "EBUSY"),
    ("remount hooks", "EPERM", "EPERM"),
    ("mount-setattr-clear-rdonly hooks", "EPERM", "EPERM"),
    ("open-tree hooks", "EPERM", "EPERM"),
    ("umount hooks", "EPERM", "EPERM"),
    // The protected file.
    ("openat conf RDONLY", "none", "none"),
    ("openat conf WRONLY", "EROFS", "EROFS"),
    ("truncate conf", "EROFS", "EROFS"),
    ("chmod conf 0777", "EROFS", "EROFS"),
    ("unlink conf", "EBUSY", "EBUSY"),
    ("rename conf moved", "EBUSY", "EBUSY"),
    ("rename file conf", "EBUSY", "EBUSY"),
    ("rename conf file EXCHANGE", "EBUSY", "EBUSY"),
    ("link conf new", "EXDEV", "EXDEV"),
];

/// Makes each attempt of its standard input, one a line.
const INSIDE: &str = "exec 9<keys; while read -r line; do \
                      case $line in *'{shell}'*) line=${line%%'{shell}'*}$$${line#*'{shell}'};; esac; \
                      \"$1\" $line; done";

fn every_attempt_fails_twice(caller: &Caller) -> Outcome {
    for name in ["keys", "vault", "hooks", "empty"] {
        caller.make_dir(format!("workspace/{name}"))?;
    }
    for name in ["keys/secret", "keys/other", "vault/inner", "hooks/hook", "conf", "file"] {
        caller.make_file(format!("workspace/{name}"), &format!("{name}\n"))?;
    }
    symlink("keys/secret", caller.path("workspace/link"))?;
    caller.persona().own(&caller.path("workspace/link"))?;
    let before = Snapshot::of(&caller.workspace())?;
    for run in ["first run", "second run"] {
        let problems = attempt_all(caller)?;
        assert!(problems.is_empty(), "{run}:\n{}", problems.join("\n"));
        let changes = Snapshot::of(&caller.workspace())?.changes_since(&before);
        assert_eq!(changes, Vec::<String>::new(), "{run}");
    }
    Ok(())
}

/// What came out otherwise than expected.
fn attempt_all(caller: &Caller) -> Result<Vec<String>, Stop> {
    let workspace = caller.workspace().canonicalize()?.to_string_lossy().into_owned();
    let id = caller.persona().id().to_string();
    let lines: String = ATTEMPTS
        .iter()
        .map(|(line, _, _)| line.replace("{workspace}", &workspace).replace("{id}", &id) + "\n")
        .collect();
    fs::write(caller.path("attempts"), lines)?;
    let probe = caller.program().with_file_name("dsh-probe");
    let mut command = caller.dsh_run(OPTIONS);
    command.args(["-c", INSIDE, "--"]).arg(probe);
    let ended = finish(command.stdin(fs::File::open(caller.path("attempts"))?))?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    let results: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(results.len(), ATTEMPTS.len(), "{}", ended.stdout);
    let mut problems = Vec::new();
    for ((line, ordinary, root), result) in ATTEMPTS.iter().zip(results) {
        let result: serde_json::Value = serde_json::from_str(result)?;
        let errno = result["errno"].as_str().unwrap_or("none");
        let expected = if caller.persona().is_root() { root } else { ordinary };
        if errno != *expected {
            problems.push(format!("{line}: expected {expected}, got {errno}"));
        }
    }
    Ok(problems)
}
