//! Protected paths: what stays read-only within what is writable, and what of git works then.

use std::fs;
use std::os::unix::fs::symlink;

use dsh_facts::Facts;

use crate::calling::{resolved, run, script};
use crate::support::caller::{Caller, finish};
use crate::support::running::Finished;
use crate::support::suite::{Outcome, Stop, tests};

tests![
    a_file,
    a_directory_and_all_below,
    what_holds_the_workspace,
    a_writable_root_within,
    what_is_not_writable_anyway,
    a_repository,
    a_repository_behind_a_link,
    a_repository_without_hooks,
    a_linked_worktree,
];

const WRITES: [&str; 2] = ["--mode", "workspace-write"];

fn tried(caller: &Caller, options: &[&str], text: &str) -> Result<(Finished, Facts), Stop> {
    let profile = options.contains(&"--profile");
    let mode = if profile { &[][..] } else { &WRITES };
    run(caller, &[mode, options, &["-c", text]].concat())
}

/// Every line must say that the file system is read-only.
fn assert_read_only(ended: &Finished, count: usize) {
    let refused = ended.stderr.matches("Read-only file system").count();
    let lines = ended.stderr.lines().count();
    assert_eq!((refused, lines), (count, count), "{}", ended.stderr);
}

fn a_file(caller: &Caller) -> Outcome {
    caller.make_file("workspace/conf", "fixed\n")?;
    symlink("conf", caller.path("workspace/link"))?;
    let absolute = caller.path("workspace/conf").to_string_lossy().into_owned();
    for name in ["conf", "link", &*absolute, "../workspace/conf"] {
        let tries = "echo x >conf; echo x >>link; chmod 777 conf; touch -d @0 conf";
        let (ended, facts) = tried(caller, &["--protect", name], tries)?;
        assert_read_only(&ended, 4);
        assert_eq!(facts.protected, [resolved(caller, "workspace/conf")]);
        assert_eq!(script(caller, &["--protect", name], "cat conf; echo y >new")?.0, "fixed\n");
    }
    Ok(())
}

fn a_directory_and_all_below(caller: &Caller) -> Outcome {
    for name in ["workspace/fixed", "workspace/fixed/deep"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/fixed/deep/file", "fixed\n")?;
    let tries = "cd fixed; echo x >deep/file; : >new; mkdir deep/new; rm deep/file; rmdir deep; \
                 chmod 700 .; chmod 700 deep; ln deep/file deep/link; mv deep/file deep/moved";
    let (ended, facts) = tried(caller, &["--protect", "fixed"], tries)?;
    assert_read_only(&ended, 9);
    assert_eq!(facts.protected, [resolved(caller, "workspace/fixed")]);
    assert_eq!(fs::read_to_string(caller.path("workspace/fixed/deep/file"))?, "fixed\n");
    Ok(())
}

fn what_holds_the_workspace(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/below")?;
    symlink("workspace", caller.path("to-workspace"))?;
    for name in [".", "..", "../to-workspace", "/var/tmp", "/"] {
        let tries = ": >new; : >below/new; rmdir below; chmod 700 .";
        let (ended, facts) = tried(caller, &["--protect", name], tries)?;
        assert_read_only(&ended, 4);
        assert_eq!(facts.protected.len(), 1);
    }
    Ok(())
}

fn a_writable_root_within(caller: &Caller) -> Outcome {
    for name in ["extra", "extra/root", "workspace/below", "workspace/below/root"] {
        caller.make_dir(name)?;
    }
    let roots = ["--writable", "below/root", "--writable", "../extra/root"];
    let tries = ": >below/root/new; : >../extra/root/new";
    let options = [&roots[..], &["--protect", "below", "--protect", "../extra"]].concat();
    assert_read_only(&tried(caller, &options, tries)?.0, 2);
    Ok(())
}

fn what_is_not_writable_anyway(caller: &Caller) -> Outcome {
    caller.make_file("home/file", "")?;
    caller.make_file("workspace/file", "")?;
    for options in [
        &["--mode", "read-only", "--protect", "file"][..],
        &["--mode", "workspace-write", "--protect", "../home/file"],
    ] {
        let (_, facts) = script(caller, options, "true")?;
        assert_eq!((facts.protected.len(), facts.missing.len()), (1, 0), "{options:?}");
    }
    Ok(())
}

/// A repository of the persona's with one commit.
fn repository(caller: &Caller, name: &str) -> Outcome {
    let script = "git init -q \"$1\" && cd \"$1\" && git config user.name t && \
                  git config user.email t@t && git commit -q --allow-empty -m first";
    let mut command = caller.command("sh");
    let ended = finish(command.args(["-euc", script, "sh"]).arg(caller.path(name)))?;
    assert_eq!(ended.stderr, "");
    Ok(())
}

/// What of git must go on, and what must not.
const COMMIT: &str = "echo x >file && git add file && git commit -qm second && \
                      git switch -qc other && git stash list && git log --format=%s";
const PLANT: &str = "git config core.fsmonitor evil; echo evil >>.git/config; \
                     echo evil >.git/hooks/post-commit; chmod 755 .git/hooks/*.sample; \
                     mv .git moved; mv .git/hooks .git/moved; mv .git/config .git/moved; \
                     rm -f .git/config; echo evil >.git/info/attributes";

fn assert_planted_nothing(caller: &Caller, options: &[&str]) -> Outcome {
    let (ended, _) = tried(caller, options, PLANT)?;
    let pinned = ended.stderr.matches("Device or resource busy").count();
    assert_eq!(pinned, 5, "{}", ended.stderr);
    assert!(ended.stderr.matches("Read-only file system").count() >= 3, "{}", ended.stderr);
    Ok(())
}

fn a_repository(caller: &Caller) -> Outcome {
    repository(caller, "workspace")?;
    let options = ["--profile", "protect-vcs"];
    assert_planted_nothing(caller, &options)?;
    let (log, facts) = script(caller, &options, COMMIT)?;
    assert_eq!(log, "second\nfirst\n");
    let there = ["hooks", "config", "info"].map(|name| format!("workspace/.git/{name}"));
    assert_eq!(facts.protected, there.map(|name| resolved(caller, &name)));
    let missing = ["config.worktree", "commondir"].map(|name| format!("workspace/.git/{name}"));
    assert_eq!(facts.missing, missing.map(|name| resolved(caller, &name)));
    // The next run finds it all in the same places.
    assert_planted_nothing(caller, &options)
}

/// As a submodule's, or a dotfile manager's: what the link leads to counts, and the link itself.
fn a_repository_behind_a_link(caller: &Caller) -> Outcome {
    repository(caller, "workspace")?;
    fs::rename(caller.path("workspace/.git"), caller.path("workspace/real"))?;
    symlink("real", caller.path("workspace/.git"))?;
    let options = ["--profile", "protect-vcs"];
    assert_planted_nothing(caller, &options)?;
    let (_, facts) = tried(caller, &options, "mv real moved; rm .git; ln -sfn /tmp .git")?;
    assert_eq!(facts.protected[0], resolved(caller, "workspace/real/hooks"));
    assert_eq!(fs::read_link(caller.path("workspace/.git"))?, std::path::Path::new("real"));
    assert_eq!(script(caller, &options, COMMIT)?.0, "second\nfirst\n");
    Ok(())
}

fn a_repository_without_hooks(caller: &Caller) -> Outcome {
    repository(caller, "workspace")?;
    fs::remove_dir_all(caller.path("workspace/.git/hooks"))?;
    let (_, facts) = script(caller, &["--profile", "protect-vcs"], "true")?;
    let missing = resolved(caller, "workspace/.git/hooks");
    assert!(facts.missing.contains(&missing), "{:?}", facts.missing);
    assert!(!caller.path("workspace/.git/hooks").exists());
    Ok(())
}

/// `.git` is a file there, and names the directory of the repository.
fn a_linked_worktree(caller: &Caller) -> Outcome {
    repository(caller, "main")?;
    let mut add = caller.command("git");
    add.args(["-C", "../main", "worktree", "add", "-q", "../tree"]);
    assert_eq!(finish(&mut add)?.stderr, "");
    let options = ["--workspace", "../tree", "--profile", "protect-vcs"];
    let tries = "echo gitdir: /tmp >.git; rm -f .git; mv .git moved; chmod 600 .git";
    let mut command = caller.dsh_run(["--facts", "../facts.json"]);
    command.args(options).args(["-c", tries]).current_dir(caller.path("tree"));
    let (ended, facts) = crate::calling::facts_of(caller, &mut command)?;
    for (says, count) in [("Read-only file system", 2), ("Device or resource busy", 2)] {
        assert_eq!(ended.stderr.matches(says).count(), count, "{}", ended.stderr);
    }
    assert!(facts.protected.iter().all(|path| *path == resolved(caller, "tree/.git")));
    assert_eq!((facts.protected.len(), facts.missing.len()), (5, 0), "{facts:?}");
    let mut command = caller.dsh_run(["--writable", "../main", "--profile", "protect-vcs"]);
    command.args(["-c", COMMIT]).current_dir(caller.path("tree"));
    let ended = finish(&mut command)?;
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("second\nfirst\n", ""));
    Ok(())
}
