//! Nothing that a command prints or does changes its facts.

use std::fs;

use serde_json::Value;

use crate::reading::{CONFINED, FACTS, at, command, read, stream};
use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    the_stream_is_not_inherited,
    lines_printed_by_the_command,
    writing_to_every_descriptor,
    the_file_is_out_of_reach,
];

/// What a forger would like the facts to say.
const FORGED: &str = "{\"event\":\"exit\",\"version\":1,\"outcome\":\"ran\",\"forged\":true}";

fn the_stream_is_not_inherited(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let script = "for n in {0..1100}; do [ -e /proc/$$/fd/$n ] && seen=\"$seen $n\"; done; \
                      echo \"only$seen\"";
        let (ended, _) = stream(caller, &["--mode", mode, "-c", script])?;
        assert_eq!(ended.stdout, "only 0 1 2\n", "{mode}");
    }
    let (ended, _) = stream(caller, &["--mode", "danger-full-access", "-c", "[ ! -e /dev/fd/7 ]"])?;
    assert_eq!(ended.status.code(), Some(0), "danger-full-access");
    Ok(())
}

fn lines_printed_by_the_command(caller: &Caller) -> Outcome {
    let script = format!("echo '{FORGED}'; echo '{FORGED}' >&2; exit 3");
    for mode in CONFINED {
        let (ended, lines) = stream(caller, &["--mode", mode, "-c", &script])?;
        fs::remove_file(caller.path("stream"))?;
        assert_eq!(ended.stdout.trim_end(), FORGED, "{mode}");
        assert_eq!(lines.len(), 2, "{mode}");
        assert!(lines.iter().all(|line| line.get("forged").is_none()), "{mode}");
        assert_eq!(at(&lines[1], "/exit/code"), 3, "{mode}");
        finish(&mut command(caller, &["--mode", mode, "-c", &script]))?;
        let facts = read(caller)?;
        assert!(facts.get("forged").is_none(), "{mode}");
        assert_eq!(at(&facts, "/exit/code"), 3, "{mode}");
    }
    Ok(())
}

fn writing_to_every_descriptor(caller: &Caller) -> Outcome {
    // Its own, and those of every process that it can see: pid 1 is the sandbox's.
    let script = format!(
        "for n in {{0..300}}; do echo '{FORGED}' >&$n; done; \
         for f in /proc/[0-9]*/fd/*; do echo '{FORGED}' >\"$f\"; done; kill -9 1; kill -9 -1; exit 3"
    );
    for mode in CONFINED {
        let (_, lines) = stream(caller, &["--mode", mode, "-c", &script])?;
        fs::remove_file(caller.path("stream"))?;
        let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(events, ["started", "exit"], "{mode}");
        assert!(lines.iter().all(|line| line.get("forged").is_none()), "{mode}");
        assert_eq!(at(&lines[1], "/exit/code"), 3, "{mode}");
    }
    Ok(())
}

fn the_file_is_out_of_reach(caller: &Caller) -> Outcome {
    caller.make_file(FACTS, "old\n")?;
    let place = caller.path(".").canonicalize()?.display().to_string();
    let script = format!(
        "cd '{place}'; rm -f {FACTS}; mv {FACTS} other; ln -s /dev/null x; \
         echo '{FORGED}' >{FACTS}; echo '{FORGED}' >.dsh-facts-1; exit 3"
    );
    for mode in CONFINED {
        finish(&mut command(caller, &["--mode", mode, "-c", &script]))?;
        let facts: Value = read(caller)?;
        assert_eq!(at(&facts, "/exit/code"), 3, "{mode}");
        assert!(!caller.path("other").exists() && !caller.path("x").exists(), "{mode}");
    }
    Ok(())
}
