//! The facts file: it appears at the end, whole, in the place of what was there before.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::reading::{FACTS, at, command, read};
use crate::support::caller::{Caller, finish};
use crate::support::running::Running;
use crate::support::suite::{Outcome, Stop, tests};

tests![
    it_takes_the_place_of_the_old_one,
    a_link_is_replaced_and_its_target_is_not,
    a_name_without_a_directory,
    a_name_by_way_of_the_workspace,
    nothing_is_left_of_a_run_that_is_killed,
    a_directory_that_is_moved_meanwhile,
];

/// A command that runs until its standard input ends.
fn start_waiting(caller: &Caller, facts: &Path) -> Result<Running, Stop> {
    let mut command = caller.known_dsh_run(["--mode", "workspace-write", "--facts"]);
    command.arg(facts).args(["-c", "echo ready >&2; cat; exit 4"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command)?;
    assert!(running.wait_for_stderr("ready")?);
    Ok(running)
}

/// The names in the directory beside the workspace.
fn names(caller: &Caller) -> std::io::Result<Vec<String>> {
    let entries = fs::read_dir(caller.path("."))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn it_takes_the_place_of_the_old_one(caller: &Caller) -> Outcome {
    let path = caller.make_file(FACTS, "old\n")?;
    let before = path.metadata()?;
    let mut running = start_waiting(caller, &path)?;
    assert_eq!(fs::read_to_string(&path)?, "old\n", "while it runs");
    assert_eq!(names(caller)?, [FACTS, "home", "pid", "workspace"], "while it runs");
    drop(running.stdin());
    running.finish()?;
    assert_eq!(at(&read(caller)?, "/exit/code"), 4);
    let after = path.metadata()?;
    assert_ne!(before.ino(), after.ino(), "a reader of the old one must not see half of the new");
    assert_eq!(after.uid(), caller.persona().id());
    assert_eq!(names(caller)?, [FACTS, "home", "pid", "workspace"], "afterwards");
    Ok(())
}

fn a_link_is_replaced_and_its_target_is_not(caller: &Caller) -> Outcome {
    caller.make_file("target", "target\n")?;
    symlink("target", caller.path(FACTS))?;
    finish(&mut command(caller, &["--", "true"]))?;
    assert_eq!(at(&read(caller)?, "/exit/code"), 0);
    assert!(caller.path(FACTS).symlink_metadata()?.is_file());
    assert_eq!(fs::read_to_string(caller.path("target"))?, "target\n");
    // A link that leads nowhere is no different.
    fs::remove_file(caller.path(FACTS))?;
    symlink("nowhere", caller.path(FACTS))?;
    finish(&mut command(caller, &["--", "true"]))?;
    assert_eq!(at(&read(caller)?, "/exit/code"), 0);
    assert!(!caller.path("nowhere").exists());
    Ok(())
}

fn a_name_without_a_directory(caller: &Caller) -> Outcome {
    let mut command = caller.dsh_run(["--facts", FACTS, "--", "true"]);
    let ended = finish(command.current_dir(caller.path("home")))?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    let facts: Value = serde_json::from_slice(&fs::read(caller.path("home").join(FACTS))?)?;
    assert_eq!(at(&facts, "/exit/code"), 0);
    Ok(())
}

fn a_name_by_way_of_the_workspace(caller: &Caller) -> Outcome {
    // The workspace's own `..` is no link that a command could change.
    for name in ["../facts.json", "./../facts.json", "../workspace/../facts.json"] {
        let options = ["--mode", "workspace-write", "--facts", name, "--", "true"];
        let ended = finish(&mut caller.dsh_run(options))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{name}");
        assert_eq!(at(&read(caller)?, "/exit/code"), 0, "{name}");
        fs::remove_file(caller.path(FACTS))?;
    }
    Ok(())
}

fn nothing_is_left_of_a_run_that_is_killed(caller: &Caller) -> Outcome {
    let path = caller.make_file(FACTS, "old\n")?;
    let running = start_waiting(caller, &path)?;
    kill(caller.pid()?, Signal::SIGKILL)?;
    running.finish()?;
    assert_eq!(fs::read_to_string(&path)?, "old\n");
    assert_eq!(names(caller)?, [FACTS, "home", "pid", "workspace"]);
    Ok(())
}

fn a_directory_that_is_moved_meanwhile(caller: &Caller) -> Outcome {
    caller.make_dir("place")?;
    let mut running = start_waiting(caller, &caller.path("place/facts.json"))?;
    fs::rename(caller.path("place"), caller.path("moved"))?;
    symlink("home", caller.path("place"))?;
    drop(running.stdin());
    let begin = Instant::now();
    running.finish()?;
    assert!(begin.elapsed() < Duration::from_secs(20));
    let facts: Value = serde_json::from_slice(&fs::read(caller.path("moved/facts.json"))?)?;
    assert_eq!(at(&facts, "/exit/code"), 4);
    assert_eq!(fs::read_dir(caller.path("home"))?.count(), 0);
    Ok(())
}
