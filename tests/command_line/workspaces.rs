//! Workspaces of every kind: repositories, other owners, mounts below them, moved ones.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Uid, chown};

use crate::support::caller::{Caller, finish};
use crate::support::running::Running;
use crate::support::suite::{Outcome, skip, tests};

tests![
    a_repository,
    a_repository_of_another_owner,
    nothing_is_written_in_read_only,
    further_roots,
    a_mount_below,
    a_proc_below,
    one_that_was_moved_before,
    one_that_is_moved_meanwhile,
];

const COMMIT: &str = "git init -q . && git -c user.name=t -c user.email=t@t commit -q \
                      --allow-empty -m x && touch /etc/dsh-test-x";

/// Checks what the commit script came to: the commit is there, and only its last step failed.
fn assert_committed(caller: &Caller, script: &str) -> Outcome {
    let ended = finish(&mut caller.dsh_run(["--mode", "workspace-write", "-c", script]))?;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let refusal = if caller.persona().is_root() { "Read-only file system" } else { "" };
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("/etc/dsh-test-x") && last.contains(refusal), "{}", ended.stderr);
    let mut log = caller.command("git");
    let log = finish(log.args(["-c", "safe.directory=*", "log", "--format=%s"]))?;
    assert_eq!((log.stdout.as_str(), log.stderr.as_str()), ("x\n", ""));
    assert!(!Path::new("/etc/dsh-test-x").exists());
    Ok(())
}

fn a_repository(caller: &Caller) -> Outcome {
    assert_committed(caller, COMMIT)
}

fn a_repository_of_another_owner(caller: &Caller) -> Outcome {
    if !caller.persona().is_root() {
        // Another owner's directory is not writable for an ordinary user anywhere.
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(1234), Gid::from_raw(1234));
    chown(&caller.workspace(), Some(uid), Some(gid))?;
    let mut init = caller.command("git");
    assert!(finish(init.args(["init", "-q", "."]))?.status.success());
    let mut hand_over = caller.command("chown");
    assert!(finish(hand_over.args(["-R", "1234:1234", "."]))?.status.success());
    fs::write(caller.path("workspace/file"), "theirs\n")?;
    chown(&caller.path("workspace/file"), Some(uid), Some(gid))?;
    fs::set_permissions(
        caller.path("workspace/file"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )?;
    let script = COMMIT.replace("git -c", "git -c safe.directory='*' -c");
    let script = format!("cat file && echo ours >>file && {script}");
    assert_committed(caller, &script)?;
    assert_eq!(fs::read_to_string(caller.path("workspace/file"))?, "theirs\nours\n");
    Ok(())
}

fn nothing_is_written_in_read_only(caller: &Caller) -> Outcome {
    let file = caller.make_file("workspace/file", "before\n")?;
    let script = "echo after >file; echo new >new; mkdir dir; chmod 0 file; rm -f file; cat file";
    let ended = finish(&mut caller.dsh_run(["-c", script]))?;
    assert_eq!(ended.stdout, "before\n");
    assert_eq!(ended.stderr.matches("Read-only file system").count(), 5, "{}", ended.stderr);
    assert_eq!(fs::read_to_string(file)?, "before\n");
    assert_eq!(fs::read_dir(caller.workspace())?.count(), 1);
    Ok(())
}

fn further_roots(caller: &Caller) -> Outcome {
    for name in ["extra", "extra/nested", "workspace/below"] {
        caller.make_dir(name)?;
    }
    let options = ["--mode", "workspace-write", "--writable", "../extra", "--writable", "below"];
    let nested = ["--writable", "../extra/nested"];
    let script = "echo 1 >../extra/a; echo 2 >../extra/nested/b; echo 3 >below/c; echo 4 >d; \
                  mv below/c e; echo 5 >../home/f";
    let mut command = caller.dsh_run(options.iter().chain(&nested));
    let ended = finish(command.args(["--", "sh", "-c", script]))?;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for (name, text) in [
        ("extra/a", "1\n"),
        ("extra/nested/b", "2\n"),
        ("workspace/e", "3\n"),
        ("workspace/d", "4\n"),
    ] {
        assert_eq!(fs::read_to_string(caller.path(name))?, text);
    }
    assert!(!caller.path("home/f").exists());
    Ok(())
}

/// Whether a private mount namespace can be had here.
fn can_mount(caller: &Caller) -> std::io::Result<bool> {
    Ok(finish(&mut caller.mounting_shell("mount -t tmpfs none below"))?.status.success())
}

fn a_mount_below(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/below")?;
    if !can_mount(caller)? {
        return skip("cannot mount a file system");
    }
    let script = "mount -t tmpfs none below; echo before >below/file; \
                  \"$DSH_RUN\" --mode workspace-write -- sh -c 'cat below/file; echo after >below/file'; \
                  cat below/file; \
                  \"$DSH_RUN\" --mode read-only -- sh -c 'echo no >below/file' || echo refused; \
                  cat below/file";
    let ended = finish(&mut caller.mounting_shell(script))?;
    assert_eq!(ended.stdout, "before\nafter\nrefused\nafter\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
    Ok(())
}

fn a_proc_below(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/below")?;
    caller.make_dir("workspace/image")?;
    caller.make_dir("workspace/image/proc")?;
    if !can_mount(caller)? {
        return skip("cannot mount a file system");
    }
    // As in the tree of an image that is being built: a kernel interface is not the project's.
    for mount in ["mount --rbind /proc image/proc", "mount -t proc proc image/proc"] {
        if !caller.persona().is_root() && mount.contains("-t proc") {
            // Mounting a new one needs a pid namespace too.
            continue;
        }
        // Its own name is the one thing in there that every process may write.
        let inside = "echo dsh >image/proc/self/comm; echo x >image/new; cat image/new";
        let script =
            format!("{mount}; exec \"$DSH_RUN\" --mode workspace-write -- bash -c \"$INSIDE\"");
        let ended = finish(caller.mounting_shell(&script).env("INSIDE", inside))?;
        assert_eq!(ended.stdout, "x\n", "{mount}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{mount}: {}", ended.stderr);
        for line in ended.stderr.lines() {
            assert!(line.ends_with("Read-only file system"), "{mount}: {}", ended.stderr);
        }
        fs::remove_file(caller.path("workspace/image/new"))?;
    }
    Ok(())
}

fn one_that_was_moved_before(caller: &Caller) -> Outcome {
    let mut command = caller.command("sh");
    let script = "mv ../workspace ../moved; exec \"$0\" --mode workspace-write -- sh -c 'pwd -P; echo x >new'";
    let ended = finish(command.args(["-c", script]).arg(caller.program()))?;
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout.trim_end(), caller.path("moved").canonicalize()?.to_string_lossy());
    assert_eq!(fs::read_to_string(caller.path("moved/new"))?, "x\n");
    Ok(())
}

fn one_that_is_moved_meanwhile(caller: &Caller) -> Outcome {
    // Writable is the directory, not whatever has its name.
    let script = "echo 1 >one; echo ready >&2; read; echo 2 >two; echo 3 >\"$1/three\"";
    let mut command = caller.dsh_run(["--mode", "workspace-write", "--", "sh", "-c", script, "sh"]);
    command.arg(caller.workspace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command)?;
    assert!(running.wait_for_stderr("ready")?);
    fs::rename(caller.workspace(), caller.path("moved"))?;
    caller.make_dir("workspace")?;
    drop(running.stdin());
    let start = Instant::now();
    running.finish()?;
    assert!(start.elapsed() < Duration::from_secs(20));
    for name in ["one", "two"] {
        assert!(caller.path("moved").join(name).exists(), "{name}");
    }
    assert_eq!(fs::read_dir(caller.workspace())?.count(), 0, "the new directory was written");
    Ok(())
}
