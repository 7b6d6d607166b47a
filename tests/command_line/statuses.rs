//! The exit status is the command's own, or says what became of it.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    every_code_is_passed_through,
    a_signal_is_128_and_its_number,
    a_time_limit_is_124,
    misuse_is_125,
    what_cannot_be_executed_is_126,
    what_cannot_be_found_is_127,
];

fn status<S: AsRef<OsStr>>(
    caller: &Caller,
    arguments: impl IntoIterator<Item = S>,
) -> std::io::Result<Option<i32>> {
    Ok(finish(&mut caller.dsh_run(arguments))?.status.code())
}

fn every_code_is_passed_through(caller: &Caller) -> Outcome {
    for code in 0..=255 {
        let script = format!("exit {code}");
        assert_eq!(status(caller, ["--", "sh", "-c", &script])?, Some(code));
    }
    for mode in ["workspace-write", "danger-full-access"] {
        for code in [0, 1, 124, 125, 126, 127, 128, 137, 255] {
            let script = format!("exit {code}");
            let arguments = ["--mode", mode, "--", "sh", "-c", &script];
            assert_eq!(status(caller, arguments)?, Some(code), "{mode}");
        }
    }
    Ok(())
}

fn a_signal_is_128_and_its_number(caller: &Caller) -> Outcome {
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        for (name, number) in [("SEGV", 11), ("KILL", 9), ("TERM", 15), ("SYS", 31), ("PIPE", 13)] {
            let script = format!("kill -{name} $$");
            let ended = finish(&mut caller.dsh_run(["--mode", mode, "--", "sh", "-c", &script]))?;
            assert_eq!(ended.status.code(), Some(128 + number), "{mode} {name}");
            assert_eq!(ended.stderr, "", "{mode} {name}");
        }
    }
    Ok(())
}

fn a_time_limit_is_124(caller: &Caller) -> Outcome {
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        let start = Instant::now();
        let arguments = ["--mode", mode, "--timeout", "100ms", "--", "sleep", "300"];
        assert_eq!(status(caller, arguments)?, Some(124), "{mode}");
        assert!(start.elapsed() >= Duration::from_millis(100), "{mode}");
    }
    // A command that ends in time keeps its status.
    assert_eq!(status(caller, ["--timeout", "1h", "--", "sh", "-c", "exit 3"])?, Some(3));
    Ok(())
}

fn misuse_is_125(caller: &Caller) -> Outcome {
    assert_eq!(status(caller, ["--no-such-option", "--", "true"])?, Some(125));
    Ok(())
}

fn what_cannot_be_executed_is_126(caller: &Caller) -> Outcome {
    caller.make_file("workspace/plain", "echo ran\n")?;
    for mode in ["read-only", "danger-full-access"] {
        for program in ["./plain", "/etc"] {
            let ended = finish(&mut caller.dsh_run(["--mode", mode, "--", program]))?;
            assert_eq!(ended.status.code(), Some(126), "{mode} {program}");
            assert_eq!(ended.stdout, "", "{mode} {program}");
            let expected = format!("dsh-run: {program}: Permission denied (EACCES)\n");
            assert_eq!(ended.stderr, expected, "{mode}");
        }
    }
    Ok(())
}

fn what_cannot_be_found_is_127(caller: &Caller) -> Outcome {
    for mode in ["read-only", "danger-full-access"] {
        for program in ["dsh-no-such-program", "./missing", "/missing/program"] {
            let ended = finish(&mut caller.dsh_run(["--mode", mode, "--", program]))?;
            assert_eq!(ended.status.code(), Some(127), "{mode} {program}");
            assert_eq!(ended.stdout, "", "{mode} {program}");
            let expected = format!("dsh-run: {program}: No such file or directory (ENOENT)\n");
            assert_eq!(ended.stderr, expected, "{mode}");
        }
    }
    Ok(())
}
