//! The scratch, the number of processes, core dumps.

use std::process::Stdio;

use crate::support::caller::{Caller, finish};
use crate::support::kernel;
use crate::support::running::Running;
use crate::support::suite::{Outcome, skip, tests};

tests![the_scratch_is_private, the_scratch_is_bounded, a_fork_bomb_is_bounded, no_core_is_dumped,];

const CONFINED: [&str; 2] = ["read-only", "workspace-write"];

fn the_scratch_is_private(caller: &Caller) -> Outcome {
    let host = tempfile::NamedTempFile::new_in("/tmp")?;
    let name = host.path().file_name().ok_or("no name")?.to_string_lossy().into_owned();
    for mode in CONFINED {
        for place in ["/tmp", "/dev/shm", "/var/tmp/../../tmp"] {
            let script = "[ ! -e \"$1\" ] && echo x >\"$2\" && cat \"$2\"";
            let (there, new) = (format!("{place}/{name}"), format!("{place}/new-{name}"));
            let arguments = ["--mode", mode, "--", "sh", "-c", script, "sh", &there, &new];
            let ended = finish(&mut caller.dsh_run(arguments))?;
            assert_eq!(
                (ended.stdout.as_str(), ended.stderr.as_str()),
                ("x\n", ""),
                "{mode} {place}"
            );
            assert!(!std::path::Path::new(&new).exists(), "{mode}: {new} is on the host");
        }
        // It goes with its command.
        let arguments = ["--mode", mode, "--", "sh", "-c", "ls -A /tmp /dev/shm"];
        assert_eq!(
            finish(&mut caller.dsh_run(arguments))?.stdout,
            "/dev/shm:\n\n/tmp:\n",
            "{mode}"
        );
    }
    Ok(())
}

fn the_scratch_is_bounded(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        for (first, second) in [("/tmp", "/tmp"), ("/tmp", "/dev/shm"), ("/dev/shm", "/tmp")] {
            let script = format!(
                "head -c 700K /dev/zero >{first}/a && echo fits; head -c 700K /dev/zero >{second}/b"
            );
            let options = ["--mode", mode, "--scratch-size", "1M", "-c", &script];
            let ended = finish(&mut caller.dsh_run(options))?;
            assert_eq!(ended.stdout, "fits\n", "{mode} {first}: {}", ended.stderr);
            let full = ended.stderr.contains("No space left on device");
            assert!(full && ended.status.code() == Some(1), "{mode} {second}: {}", ended.stderr);
        }
    }
    Ok(())
}

/// Forks until it cannot, says why, and holds what it has until standard input ends.
const FORK_BOMB: &str = r#"
    $| = 1;
    my $children = 0;
    while ($children < 2000) {
        my $child = fork;
        if (!defined $child) {
            print STDERR exists $!{EAGAIN} && $!{EAGAIN} ? "EAGAIN" : "$!", " after $children\n";
            <STDIN>;
            exit 3;
        }
        if (!$child) { sleep 300; exit }
        $children++;
    }
    print STDERR "unbounded\n";
"#;

fn a_fork_bomb_is_bounded(caller: &Caller) -> Outcome {
    if caller.persona().is_root() && !kernel::at_least(6, 14) {
        return skip("limits bind root only from Linux 6.14 on");
    }
    if finish(caller.command("perl").args(["-e", "1"])).is_err() {
        return skip("perl is not installed");
    }
    for mode in CONFINED {
        let arguments = ["--mode", mode, "--pids", "400", "--", "perl", "-MErrno", "-e", FORK_BOMB];
        let mut command = caller.dsh_run(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut bomb = Running::start(&mut command)?;
        assert!(bomb.wait_for_stderr("\n")?, "{mode}: it ended early");
        // The caller's own processes are not counted: it can still start as many.
        let crowd = "for n in $(seq 50); do sleep 0.1 & done; wait; echo fine";
        let beside = finish(caller.command("sh").args(["-c", crowd]))?;
        drop(bomb.stdin());
        let ended = bomb.finish()?;
        assert_eq!((beside.stdout.as_str(), beside.stderr.as_str()), ("fine\n", ""), "{mode}");
        assert_eq!(ended.status.code(), Some(3), "{mode}: {}", ended.stderr);
        let reached =
            ended.stderr.strip_prefix("EAGAIN after ").and_then(|n| n.trim().parse().ok());
        let reached: u32 = reached.ok_or_else(|| format!("{mode}: {}", ended.stderr))?;
        assert!((380..=400).contains(&reached), "{mode}: {reached}");
    }
    Ok(())
}

fn no_core_is_dumped(caller: &Caller) -> Outcome {
    let mut command = caller.command("bash");
    let script = "ulimit -c unlimited 2>/dev/null; exec \"$0\" --mode workspace-write -c \"$1\"";
    let inside = "ulimit -Hc; ulimit -Sc; bash -c 'kill -SEGV $$'; ls -A; kill -SEGV $$";
    let ended = finish(command.args(["-c", script]).arg(caller.program()).arg(inside))?;
    assert_eq!(ended.status.code(), Some(128 + 11));
    assert_eq!(ended.stdout, "0\n0\n");
    assert!(!ended.stderr.contains("core dumped"), "{}", ended.stderr);
    Ok(())
}
