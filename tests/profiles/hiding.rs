//! Hidden paths: what cannot be read, by whatever name it was hidden.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::unistd::{Gid, Uid, chown};

use crate::calling::{resolved, run, script};
use crate::support::caller::Caller;
use crate::support::refused::{assert_refused, marked};
use crate::support::snapshot::Snapshot;
use crate::support::suite::{Outcome, tests};

tests![
    a_file_by_each_of_its_names,
    a_directory,
    the_file_of_another_owner,
    what_lies_behind_a_closed_directory,
    places_of_the_sandboxs_own,
    what_does_not_exist,
    a_hard_link_is_another_file_name,
    what_the_command_works_in,
    where_the_command_starts,
    the_program_itself,
];

const MODES: [&str; 2] = ["read-only", "workspace-write"];

/// What a reader of something hidden is told: root may open anything, and finds it empty.
fn refusal(caller: &Caller) -> &'static str {
    if caller.persona().is_root() { "" } else { "Permission denied" }
}

/// A secret in the workspace and one beside it, with links to both.
fn secrets(caller: &Caller) -> std::io::Result<()> {
    caller.make_dir("workspace/keys")?;
    caller.make_dir("keys")?;
    caller.make_file("workspace/keys/secret", "inner secret\n")?;
    caller.make_file("keys/secret", "outer secret\n")?;
    symlink("keys/secret", caller.path("workspace/to-file"))?;
    symlink("keys", caller.path("workspace/to-directory"))?;
    symlink(caller.path("keys"), caller.path("workspace/to-outside"))?;
    symlink("to-file", caller.path("workspace/to-link"))?;
    symlink("workspace", caller.path("to-workspace"))
}

fn a_file_by_each_of_its_names(caller: &Caller) -> Outcome {
    secrets(caller)?;
    let absolute = caller.path("workspace/keys/secret").to_string_lossy().into_owned();
    let places = [caller.workspace(), caller.path("keys")];
    let look = || places.iter().map(|place| Snapshot::of(place)).collect::<Result<Vec<_>, _>>();
    let before = look()?;
    for (name, hidden, other) in [
        ("keys/secret", "workspace/keys/secret", "../keys/secret"),
        (&*absolute, "workspace/keys/secret", "../keys/secret"),
        ("to-file", "workspace/keys/secret", "../keys/secret"),
        ("to-link", "workspace/keys/secret", "../keys/secret"),
        ("to-directory/secret", "workspace/keys/secret", "../keys/secret"),
        ("./keys/../to-directory/./secret", "workspace/keys/secret", "../keys/secret"),
        ("../to-workspace/keys/secret", "workspace/keys/secret", "../keys/secret"),
        ("../keys/secret", "keys/secret", "keys/secret"),
        ("to-outside/secret", "keys/secret", "keys/secret"),
    ] {
        for mode in MODES {
            let read = "cat keys/secret to-file to-directory/secret to-outside/secret";
            let arguments = ["--mode", mode, "--hide", name, "-c", read];
            let (ended, facts) = run(caller, &arguments)?;
            assert_eq!(facts.hidden, [resolved(caller, hidden)], "{name}");
            let place = if other.starts_with("..") { "inner" } else { "outer" };
            assert!(!ended.stdout.contains(place), "{name}: {}", ended.stdout);
            let others = if place == "inner" { 1 } else { 3 };
            assert_eq!(ended.stdout.lines().count(), others, "{name}: {}", ended.stdout);
            assert!(ended.stderr.contains(refusal(caller)), "{name}: {}", ended.stderr);
            assert_eq!((facts.missing, facts.protected), (vec![], vec![]));
        }
    }
    for (now, before) in look()?.iter().zip(&before) {
        assert_eq!(now.changes_since(before), Vec::<String>::new());
    }
    Ok(())
}

fn a_directory(caller: &Caller) -> Outcome {
    secrets(caller)?;
    for name in ["keys", "keys/", "to-directory", "keys/.", "../workspace/keys"] {
        for mode in MODES {
            let look = "ls -A keys to-directory; cat keys/secret; cd keys && ls -A";
            let (ended, facts) = run(caller, &["--mode", mode, "--hide", name, "-c", look])?;
            assert_eq!(facts.hidden, [resolved(caller, "workspace/keys")], "{name}");
            assert!(!ended.stdout.contains("secret"), "{name}: {}", ended.stdout);
            let says = if caller.persona().is_root() { "No such file" } else { refusal(caller) };
            assert!(ended.stderr.contains(says), "{name}: {}", ended.stderr);
            // What it looks like from beside: a directory that is closed.
            let (seen, _) = script(caller, &["--mode", mode, "--hide", name], "stat -c %A keys")?;
            assert_eq!(seen, "d---------\n");
        }
    }
    Ok(())
}

fn the_file_of_another_owner(caller: &Caller) -> Outcome {
    let file = if caller.persona().is_root() {
        let file = caller.make_file("workspace/theirs", "theirs\n")?;
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600))?;
        chown(&file, Some(Uid::from_raw(1234)), Some(Gid::from_raw(1234)))?;
        file
    } else {
        "/etc/passwd".into()
    };
    let file = file.to_string_lossy();
    for mode in MODES {
        let (ended, facts) = run(caller, &["--mode", mode, "--hide", &file, "--", "cat", &file])?;
        assert_eq!((ended.stdout.as_str(), facts.hidden.len()), ("", 1), "{}", ended.stderr);
        assert!(ended.stderr.contains(refusal(caller)), "{}", ended.stderr);
    }
    Ok(())
}

/// An owner may open a closed directory again, and so may the command where it can write.
fn what_lies_behind_a_closed_directory(caller: &Caller) -> Outcome {
    for name in ["workspace/closed", "workspace/closed/deep"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/closed/deep/secret", "secret\n")?;
    let closed = caller.path("workspace/closed");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o000))?;
    let open = "chmod 700 closed; cat closed/deep/secret; echo x >closed/deep/secret; true";
    for (option, stays) in [("--hide", "secret"), ("--protect", "x")] {
        let arguments = ["--mode", "workspace-write", option, "closed/deep/secret", "-c", open];
        let (ended, facts) = run(caller, &arguments)?;
        assert_eq!(facts.missing, Vec::<String>::new());
        assert!(option == "--protect" || ended.stdout.is_empty(), "{}", ended.stdout);
        assert!(ended.stderr.contains(&format!("{stays}: ")) || ended.stderr.contains("Read-only"));
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o700))?;
        assert_eq!(fs::read_to_string(closed.join("deep/secret"))?, "secret\n", "{option}");
        fs::set_permissions(&closed, PermissionsExt::from_mode(0o000))?;
    }
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Its own /proc, /dev and /tmp take the place of the host's, and can be hidden too.
fn places_of_the_sandboxs_own(caller: &Caller) -> Outcome {
    let host = tempfile::NamedTempFile::new_in("/tmp")?;
    let host = host.path().to_string_lossy().into_owned();
    for (path, look) in [
        (&*host, "! ls $1 2>/dev/null"),
        ("/tmp", "! ls -A /tmp 2>/dev/null | grep ."),
        ("/proc/meminfo", "! grep . /proc/meminfo 2>/dev/null && read -r x </proc/self/stat"),
        ("/sys", "! ls -A /sys 2>/dev/null | grep ."),
        ("/dev/shm", "! ls -A /dev/shm 2>/dev/null | grep . && : </dev/null"),
    ] {
        for mode in MODES {
            let look = format!("{look} && echo hidden");
            let arguments = ["--mode", mode, "--hide", path, "-c", &look, "--", path];
            let (ended, facts) = run(caller, &arguments)?;
            assert_eq!(ended.stdout, "hidden\n", "{path}: {}", ended.stderr);
            assert_eq!(facts.hidden.len(), 1, "{path}: {facts:?}");
        }
    }
    Ok(())
}

fn what_does_not_exist(caller: &Caller) -> Outcome {
    caller.make_file("workspace/file", "")?;
    symlink("nothing", caller.path("workspace/dangling"))?;
    symlink("loop", caller.path("workspace/loop"))?;
    for name in ["nothing", "no/thing", "dangling", "dangling/x", "loop", "file/x", "file/../x"] {
        for option in ["--hide", "--protect"] {
            let (_, facts) = script(caller, &["--quiet", option, name], "true")?;
            let file = option == "--protect" && name.starts_with("file/");
            let missing = [caller.path("workspace").join(name).to_string_lossy().into_owned()];
            // Protected is then what stands in the way.
            let in_the_way = [resolved(caller, "workspace/file")];
            assert_eq!(facts.missing, if file { &[][..] } else { &missing }, "{option} {name}");
            assert_eq!(facts.protected, if file { &in_the_way[..] } else { &[] }, "{name}");
            assert_eq!(facts.hidden, Vec::<String>::new(), "{name}");
        }
    }
    // The command may make it.
    let options = ["--quiet", "--hide", "nothing"];
    let (made, _) = script(caller, &options, "echo made >nothing; cat nothing")?;
    assert_eq!(made, "made\n");
    Ok(())
}

/// As documented. What is protected is the name, so the file can be written by the other one too.
fn a_hard_link_is_another_file_name(caller: &Caller) -> Outcome {
    let file = caller.make_file("workspace/secret", "secret\n")?;
    fs::hard_link(file, caller.path("workspace/link"))?;
    assert_eq!(script(caller, &["--hide", "secret"], "cat link")?.0, "secret\n");
    assert_eq!(script(caller, &["--protect", "secret"], "echo x >link; cat secret")?.0, "x\n");
    Ok(())
}

fn what_the_command_works_in(caller: &Caller) -> Outcome {
    for name in ["workspace/below", "extra", "extra/root"] {
        caller.make_dir(name)?;
    }
    symlink("workspace", caller.path("to-workspace"))?;
    let workspace = resolved(caller, "workspace");
    for path in [".", "..", "/", "../workspace", "../to-workspace", "below/..", &*workspace] {
        for mode in MODES {
            let says = ["hidden path ", " is or holds ", &*workspace, "does not need"];
            let mut command = marked(caller, ["--mode", mode, "--hide", path]);
            assert_refused(caller, &mut command, &says)?;
        }
    }
    for path in ["../extra", "../extra/root"] {
        let options = ["--mode", "workspace-write", "--writable", "../extra/root", "--hide", path];
        let root = resolved(caller, "extra/root");
        assert_refused(caller, &mut marked(caller, options), &["hidden path ", path, &root])?;
    }
    Ok(())
}

fn where_the_command_starts(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/below")?;
    for mode in MODES {
        let says = ["cannot see the directory", "name another with --workdir"];
        let mut command = marked(caller, ["--mode", mode, "--workspace", "..", "--hide", "."]);
        assert_refused(caller, command.current_dir(caller.path("workspace/below")), &says)?;
    }
    Ok(())
}

fn the_program_itself(caller: &Caller) -> Outcome {
    let program = fs::canonicalize("/bin/true")?.to_string_lossy().into_owned();
    for mode in MODES {
        let (ended, facts) = run(caller, &["--mode", mode, "--hide", &program, "--", "/bin/true"])?;
        assert_eq!(ended.status.code(), Some(126), "{}", ended.stderr);
        assert!(ended.stderr.contains("EACCES"), "{}", ended.stderr);
        assert_eq!(facts.exit.and_then(|exit| exit.code), Some(126));
    }
    Ok(())
}
