//! The way to a place: no command can lead it elsewhere for the next run.

use std::fs;
use std::os::unix::fs::symlink;

use crate::calling::{own_profile, resolved, run, script};
use crate::support::caller::Caller;
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    a_missing_root_that_a_command_makes_a_link,
    a_root_that_a_command_replaces_by_a_link,
    roots_named_through_a_root,
    a_hidden_path_stays_where_it_is,
    what_is_on_no_way_can_be_moved,
    renames_out_of_a_pinned_directory,
];

/// A place that must never become writable.
fn keys(caller: &Caller) -> std::io::Result<()> {
    caller.make_dir("home/.ssh")?;
    caller.make_file("home/.ssh/authorized_keys", "mine\n").map(drop)
}

fn assert_refused_root(caller: &Caller, options: &[&str], root: &str) -> Outcome {
    let (workspace, root) = (resolved(caller, "workspace"), resolved(caller, root));
    let through = format!("is reached through the writable root {workspace}, where a command");
    let says = [&*through, &*format!("name {root} itself")];
    assert_refused(caller, &mut marked(caller, options), &says)
}

fn a_missing_root_that_a_command_makes_a_link(caller: &Caller) -> Outcome {
    keys(caller)?;
    own_profile(caller, "mine", "extends = 'workspace-write'\nwritable = ['cache']\n")?;
    let options = ["--profile", "mine"];
    let (_, facts) = script(caller, &options, "ln -s ~/.ssh cache")?;
    assert_eq!(facts.missing, [resolved(caller, "workspace/cache")]);
    assert_refused_root(caller, &options, "home/.ssh")?;
    assert_eq!(fs::read_to_string(caller.path("home/.ssh/authorized_keys"))?, "mine\n");
    Ok(())
}

fn a_root_that_a_command_replaces_by_a_link(caller: &Caller) -> Outcome {
    keys(caller)?;
    caller.make_dir("workspace/cache")?;
    own_profile(caller, "mine", "extends = 'workspace-write'\nwritable = ['cache']\n")?;
    for options in [["--profile", "mine"], ["--writable", "cache"]] {
        // It lies in the workspace and so is nothing of its own.
        let (_, facts) = script(caller, &options, "mv cache old; ln -s ~/.ssh cache")?;
        assert_eq!(facts.writable, [resolved(caller, "workspace")]);
        let again = [&["--mode", "workspace-write"], &options[..]].concat();
        assert_refused_root(caller, &again, "home/.ssh")?;
        fs::remove_file(caller.path("workspace/cache"))?;
        fs::rename(caller.path("workspace/old"), caller.path("workspace/cache"))?;
    }
    Ok(())
}

fn roots_named_through_a_root(caller: &Caller) -> Outcome {
    for name in ["extra", "extra/deep", "workspace/sub"] {
        caller.make_dir(name)?;
    }
    symlink("../extra", caller.path("workspace/link"))?;
    symlink("workspace", caller.path("to-workspace"))?;
    const WRITES: [&str; 2] = ["--mode", "workspace-write"];
    for (path, root) in
        [("link", "extra"), ("link/deep", "extra/deep"), ("sub/../../extra", "extra")]
    {
        assert_refused_root(caller, &[&WRITES[..], &["--writable", path]].concat(), root)?;
        // So is a workspace that another root leads to.
        let workspace = format!("../workspace/{path}");
        let options = ["--workspace", &*workspace, "--writable", "."];
        assert_refused_root(caller, &[&WRITES[..], &options].concat(), root)?;
    }
    // By names that no command can change, all is well.
    for path in ["../extra", "../workspace/../extra", "../to-workspace/sub", "./sub/../sub", "."] {
        let (_, facts) = script(caller, &["--writable", path], "true")?;
        assert_eq!(facts.writable.len(), if path.ends_with("extra") { 2 } else { 1 }, "{path}");
    }
    // Where nothing is writable, nobody leads anything anywhere.
    script(caller, &["--mode", "read-only", "--writable", "link"], "true")?;
    Ok(())
}

fn a_hidden_path_stays_where_it_is(caller: &Caller) -> Outcome {
    for name in ["workspace/a", "workspace/a/b", "workspace/other"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/a/b/secret", "secret\n")?;
    caller.make_file("workspace/other/secret", "decoy\n")?;
    symlink("a", caller.path("workspace/link"))?;
    symlink("link/b", caller.path("workspace/link2"))?;
    let options = ["--hide", "link2/secret", "--protect", "link2/secret"];
    let attack = "for d in a a/b link link2; do mv $d moved; rm -f $d; rmdir $d; \
                  mv -T --exchange $d other; ln -sfn other $d; done; \
                  mv a/b/secret a/b/moved; rm -f a/b/secret; mv other/secret a/b/secret; \
                  cat a/b/secret link2/secret a/b/moved";
    for _ in 0..2 {
        let arguments = [&["--mode", "workspace-write"], &options[..], &["-c", attack]].concat();
        let (ended, facts) = run(caller, &arguments)?;
        assert_eq!(ended.stdout, "", "{}", ended.stderr);
        assert_eq!(facts.hidden, [resolved(caller, "workspace/a/b/secret")]);
        assert!(ended.stderr.matches("Device or resource busy").count() >= 12, "{}", ended.stderr);
        // What was put into the directories is no loss.
        for name in ["a/other", "a/b/other"] {
            let _ = fs::remove_file(caller.workspace().join(name));
        }
    }
    assert_eq!(fs::read_to_string(caller.path("workspace/a/b/secret"))?, "secret\n");
    assert_eq!(fs::read_to_string(caller.path("workspace/other/secret"))?, "decoy\n");
    assert_eq!(fs::read_link(caller.path("workspace/link2"))?, std::path::Path::new("link/b"));
    Ok(())
}

fn what_is_on_no_way_can_be_moved(caller: &Caller) -> Outcome {
    for name in ["workspace/a", "workspace/a/beside", "workspace/b"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/a/secret", "secret\n")?;
    symlink("a", caller.path("workspace/link"))?;
    let moves =
        "mv link link2; mv b c; mv a/beside a/moved; : >a/new; mv a/new a/newer; rm a/newer";
    script(caller, &["--hide", "a/secret"], moves)?;
    assert!(caller.path("workspace/a/moved").exists() && caller.path("workspace/c").exists());
    Ok(())
}

/// As documented: a pinned directory is a mount, and rename does not cross mounts; mv copies.
fn renames_out_of_a_pinned_directory(caller: &Caller) -> Outcome {
    for name in ["workspace/a", "workspace/b"] {
        caller.make_dir(name)?;
    }
    for name in ["workspace/a/secret", "workspace/b/secret", "workspace/a/file", "workspace/file"] {
        caller.make_file(name, "content\n")?;
    }
    let probe = caller.program().with_file_name("dsh-probe").to_string_lossy().into_owned();
    let options = ["--mode", "workspace-write", "--hide", "a/secret", "--protect", "b/secret"];
    for (attempt, from, to, errno) in [
        ("rename", "a/file", "b/new", "EXDEV"),
        ("rename", "a/file", "new", "EXDEV"),
        ("rename", "file", "a/new", "EXDEV"),
        ("link", "a/file", "b/new", "EXDEV"),
        ("link", "file", "b/new", "EXDEV"),
    ] {
        let words = ["--", &*probe, attempt, from, to];
        let (ended, _) = run(caller, &[&options[..], &words].concat())?;
        assert!(ended.stdout.contains(&format!("\"errno\":\"{errno}\"")), "{}", ended.stdout);
    }
    let arguments = [&options[2..], &["--writable", "b"]].concat();
    script(caller, &arguments, "mv a/file b/new && mv b/new . && mv new a/file && cat a/file")?;
    Ok(())
}
