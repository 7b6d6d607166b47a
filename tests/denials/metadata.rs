//! Where a command has no mounts of its own, Landlock does not know metadata. In workspace-write the
//! observer changes them in the command's place, below the writable roots and nowhere else; in
//! read-only they are refused.

use std::fs;

use nix::unistd::geteuid;

use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{Fixture, own};
use crate::support::observed::Observed;
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::snapshot::Snapshot;
use crate::support::stage::Programs;
use crate::support::staged::{STAGES, Staged};
use crate::toolchain;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for staged in STAGES {
        let mut add = |name: &str, test: fn(&Programs, &Staged) -> Verdict| {
            let name = format!("metadata::{name}::{}", staged.name);
            cases.push(Case::new(name, move |programs| test(programs, &staged)));
        };
        add("changed-in-the-workspace", changed);
        add("everyday-work", everyday_work);
        add("cargo-build", cargo_build);
        add("refused-outside", refused_outside);
        add("refused-in-read-only", refused_in_read_only);
        add("of-others", of_others);
    }
    cases
}

/// The fixture, with a file in the workspace too.
fn fixture(staged: &Staged) -> std::io::Result<Fixture> {
    let uid = staged.uid;
    let fixture = Fixture::new(uid)?;
    let file = fixture.workspace().join("file");
    fs::write(&file, "")?;
    own(&file, uid)?;
    Ok(fixture)
}

/// Each call does what it does elsewhere.
fn changed(programs: &Programs, staged: &Staged) -> Verdict {
    const TEXT: &str = r#"
        see() { stat -c "%a %Y" file; }
        id=$(id -u)
        chmod 640 file; see; $P fchmodat file 0600; see; $P fchmodat2 file 0604; see
        $P utimensat file; see; touch -d @1000 file; see
        exec 5<file; $P fchmod 5 0611; see; $P futimens 5; see
        $P setxattr file user.a; $P fsetxattr 5 user.b; $P removexattr file user.a
        $P removexattr file user.a; $P chown file $id $id
        ln -s file link; touch -h -d @5 link; stat -c %Y link file; chmod 600 link; see
        mkdir dir; chmod 2755 dir; stat -c %a dir
        $P chmod missing 0600; $P fchmodat file/x 0600; $P fchmod 77 0600
    "#;
    let Some(fixture) = staged.obstacle().is_none().then(|| fixture(staged)).transpose()? else {
        return skip(staged.obstacle().unwrap_or_default());
    };
    let ran = staged.run(programs, &fixture, "workspace-write", TEXT)?;
    let mut problems = Problems::default();
    let said: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with('{')).collect();
    let now = said.first().and_then(|line| line.split_once(' ')).map_or("", |(_, time)| time);
    let times = ["640 N", "600 N", "604 N", "604 1", "604 1000", "611 1000", "611 1"];
    let mut expected: Vec<String> = times.iter().map(|line| line.replace('N', now)).collect();
    expected.extend(["5", "1", "600 1", "2755"].map(str::to_owned));
    problems.equal("said", said, expected.iter().map(String::as_str).collect());
    let answers = [
        "fchmodat ok",
        "fchmodat2 ok",
        "utimensat ok",
        "fchmod ok",
        "utimensat ok",
        "setxattr ok",
        "fsetxattr ok",
        "removexattr ok",
        "removexattr ENODATA",
        "fchownat ok",
        "chmod ENOENT",
        "fchmodat ENOTDIR",
        "fchmod EBADF",
    ];
    problems.equal("answers", ran.answers()?, answers.map(str::to_owned).to_vec());
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}

/// What programs do with metadata all the time.
fn everyday_work(programs: &Programs, staged: &Staged) -> Verdict {
    const TEXT: &str = r#"set -e
        export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
        git init -q -b main origin; cd origin
        git config user.name somebody; git config user.email somebody@example.org
        for i in $(seq 50); do echo $i >f$i; done; chmod 755 f1; git add .; git commit -q -m first
        cd ..; git clone -q origin clone; cd clone
        git config user.name somebody; git config user.email somebody@example.org
        echo more >>f2; git commit -q -a -m second; git status --porcelain; test -x f1; cd ..
        tar cf clone.tar clone; mkdir out; tar x -p -f clone.tar -C out; diff -r clone out/clone
        cp -p origin/f1 copy; cp -a out again; touch -d @99 stamp; cp -p stamp stamp2
        stat -c '%a %Y' stamp2 | grep -q ' 99$'; install -m 751 origin/f2 installed
        stat -c %a installed; mv again moved; rm -rf out moved; echo done"#;
    let Some(fixture) = staged.obstacle().is_none().then(|| fixture(staged)).transpose()? else {
        return skip(staged.obstacle().unwrap_or_default());
    };
    if std::process::Command::new("git").arg("--version").output().is_err() {
        return skip("git is not installed");
    }
    let ran = staged.run(programs, &fixture, "workspace-write", TEXT)?;
    let mut problems = Problems::default();
    problems.equal("stdout", ran.stdout.as_str(), "751\ndone\n");
    problems.equal("stderr", ran.stderr.as_str(), "");
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}

/// cargo copies what it has built with its mode and times.
fn cargo_build(programs: &Programs, staged: &Staged) -> Verdict {
    const TEXT: &str = r#"set -e
        export PATH="$TOOLCHAIN/bin:$PATH" CARGO_HOME=$PWD/home
        mkdir -p app/src tmp; export TMPDIR=$PWD/tmp; cd app; echo 'fn main() { println!("built"); }' >src/main.rs
        printf '[package]
name = "app"
version = "0.1.0"
edition = "2021"
' >Cargo.toml
        cargo build --offline -q; ./target/debug/app; cargo build --offline -q"#;
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    let Some(toolchain) = toolchain::find() else { return skip("rustc is not installed") };
    let fixture = fixture(staged)?;
    let ran = toolchain::reachable(&toolchain, Persona::of(staged.uid), |toolchain| {
        let text = format!("TOOLCHAIN={}\n{TEXT}", toolchain.display());
        staged.run_long(programs, &fixture, &text)
    })?;
    let mut problems = Problems::default();
    problems.equal("stdout", ran.stdout.as_str(), "built\n");
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}

/// An attempt on a file outside, and the operation.
const OUTSIDE: &[(&str, &str)] = &[
    ("chmod $T/outside/file 0600", "chmod"),
    ("fchmodat $T/outside/file 0600", "chmod"),
    ("fchmodat2 $T/outside/file 0600", "chmod"),
    ("chown $T/outside/file {id} {id}", "chown"),
    ("utimensat $T/outside/file", "utimes"),
    ("setxattr $T/outside/file user.x", "setxattr"),
    ("removexattr $T/outside/file user.there", "removexattr"),
    ("fchmod 5 0600", "chmod"),
    ("futimens 5", "utimes"),
    ("fsetxattr 5 user.x", "setxattr"),
];

fn attempts(programs: &Programs, staged: &Staged, mode: &str) -> Result<(), libtest_mimic::Failed> {
    let mut problems = Problems::default();
    let fixture = fixture(staged)?;
    let file = fixture.file();
    let prepared = std::process::Command::new(programs.dsh_probe())
        .args(["setxattr".as_ref(), file.as_os_str(), "user.there".as_ref()])
        .output()?;
    problems.check(prepared.status.success(), || "not prepared".to_owned());
    let before = Snapshot::of(&fixture.outside())?;
    let id = staged.uid.to_string();
    for (text, operation) in OUTSIDE {
        let text = format!("exec 5<$T/outside/file; $P {}", text.replace("{id}", &id));
        let ran = staged.run(programs, &fixture, mode, &text)?;
        check_refused(&mut problems, &ran, &text, operation)?;
    }
    let changes = Snapshot::of(&fixture.outside())?.changes_since(&before);
    problems.equal("changes of the host", changes, Vec::new());
    problems.verdict(&mode).map(|_| ())
}

/// By whichever layer, but by one that is there, and it is told.
fn check_refused(
    problems: &mut Problems,
    ran: &Observed,
    text: &str,
    operation: &str,
) -> std::io::Result<()> {
    let answer = ran.answer()?;
    problems.check(answer.ends_with("EPERM") || answer.ends_with("EACCES"), || {
        format!("{text}: {answer}")
    });
    let [denial] = &ran.facts.denials[..] else {
        problems.check(false, || format!("{text}: {:?}", ran.facts.denials));
        return Ok(());
    };
    problems.equal(text, denial.operation.as_str(), operation);
    problems.check(answer.ends_with(&denial.errno), || format!("{text}: {denial:?}: {answer}"));
    ran.check_shape(problems, text);
    Ok(())
}

fn refused_outside(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    attempts(programs, staged, "workspace-write")?;
    Problems::default().verdict(&"")
}

fn refused_in_read_only(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    attempts(programs, staged, "read-only")?;
    Problems::default().verdict(&"")
}

/// Files of somebody else, which an ordinary user could not change outside either.
fn of_others(programs: &Programs, staged: &Staged) -> Verdict {
    if let Some(reason) = staged.obstacle() {
        return skip(reason);
    }
    assert!(geteuid().is_root(), "only root sets up a stage");
    let mut problems = Problems::default();
    for mode in ["read-only", "workspace-write"] {
        let fixture = fixture(staged)?;
        for name in ["outside/theirs", "workspace/theirs"] {
            let path = fixture.top().join(name);
            fs::write(&path, "")?;
            own(&path, 1000)?;
        }
        let before = Snapshot::of(&fixture.outside())?;
        let text = "$P chmod $T/outside/theirs 0600; $P chmod /etc/passwd 0600; \
                    $P utimensat $T/outside/theirs; $P chmod $T/workspace/theirs 0604";
        let ran = staged.run(programs, &fixture, mode, text)?;
        if staged.uid != 0 {
            let refused = ran.answers()?.iter().filter(|answer| answer.ends_with("EPERM")).count();
            problems.equal("refused", refused, 4);
            ran.check_denials(&mut problems, mode, &[]);
        } else {
            problems.equal(mode, ran.denials().len(), if mode == "read-only" { 4 } else { 3 });
        }
        let changes = Snapshot::of(&fixture.outside())?.changes_since(&before);
        problems.equal("changes of the host", changes, Vec::new());
    }
    problems.verdict(&"")
}
