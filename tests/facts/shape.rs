//! The shape of the facts, on every rung.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::reading::{CONFINED, FACTS, at, command, read, run};
use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    a_confined_run,
    the_widest_rung,
    a_network_that_was_asked_for,
    refused_requests,
    withheld_variables,
    granted_files,
    names_that_are_not_utf8,
];

fn a_confined_run(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let (ended, facts) = run(caller, &["--mode", mode, "--", "true"])?;
        assert_eq!(ended.status.code(), Some(0));
        for (pointer, expected) in [
            ("/version", json!(1)),
            ("/outcome", json!("ran")),
            ("/error", Value::Null),
            ("/mode", json!(mode)),
            ("/workspace", json!(caller.workspace().canonicalize()?.to_string_lossy())),
            ("/network", json!("loopback")),
            ("/denied", json!(false)),
            ("/denial_source", json!("observed")),
            ("/denials", json!([])),
            ("/denials_dropped", json!(0)),
            ("/env_dropped", json!([])),
        ] {
            assert_eq!(at(&facts, pointer), &expected, "{mode} {pointer}: {facts:#}");
        }
        // Null is said, not left out.
        for name in ["error", "denied", "exit", "enforcement"] {
            assert!(facts.get(name).is_some(), "{mode} {name}: {facts:#}");
        }
        assert!(facts.get("workspace_base64").is_none(), "{facts:#}");
        assert!(facts.get("stdio").is_none_or(|stdio| stdio == &json!([])), "{facts:#}");
        assert_enforcement(mode, at(&facts, "/enforcement"));
    }
    Ok(())
}

/// The level follows from the gaps, and every layer says how far it holds.
fn assert_enforcement(mode: &str, enforcement: &Value) {
    let gaps = at(enforcement, "/gaps").as_array().map_or(&[][..], Vec::as_slice);
    let level = if gaps.is_empty() { "full" } else { "partial" };
    assert_eq!(at(enforcement, "/level"), level, "{mode}: {enforcement:#}");
    for gap in gaps {
        for name in ["effect", "reason", "remedy"] {
            let text = gap.get(name).and_then(Value::as_str).unwrap_or_default();
            assert!(!text.is_empty(), "{mode} {name}: {gap}");
        }
    }
    let layers = at(enforcement, "/layers").as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = layers.iter().filter_map(|layer| layer["layer"].as_str()).collect();
    for name in ["descriptors", "limits", "capabilities", "seccomp"] {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{mode}: {names:?}");
    }
    assert!(names.contains(&"mount") || names.contains(&"landlock"), "{mode}: {names:?}");
    for layer in layers {
        let state = layer["state"].as_str().unwrap_or_default();
        assert!(["enforced", "partial", "absent"].contains(&state), "{mode}: {layer}");
        assert_eq!(state == "absent", layer.get("errno").is_some(), "{mode}: {layer}");
        if layer["layer"] == "landlock" && state == "enforced" {
            assert!(layer["abi"].as_u64().is_some_and(|abi| abi > 0), "{mode}: {layer}");
        }
    }
}

fn the_widest_rung(caller: &Caller) -> Outcome {
    let (ended, facts) =
        run(caller, &["--mode", "danger-full-access", "--", "sh", "-c", "exit 3"])?;
    assert_eq!(ended.status.code(), Some(3));
    for (pointer, expected) in [
        ("/mode", json!("danger-full-access")),
        ("/network", json!("host")),
        ("/enforcement", Value::Null),
        ("/denied", json!(false)),
        ("/denial_source", json!("unavailable")),
        ("/exit/code", json!(3)),
        ("/env_dropped", json!([])),
    ] {
        assert_eq!(at(&facts, pointer), &expected, "{pointer}: {facts:#}");
    }
    Ok(())
}

fn a_network_that_was_asked_for(caller: &Caller) -> Outcome {
    for network in ["off", "loopback", "host"] {
        let (_, facts) = run(caller, &["--network", network, "--", "true"])?;
        assert_eq!(at(&facts, "/network"), network);
        let (_, facts) =
            run(caller, &["--network", network, "--workspace", "missing", "--", "true"])?;
        assert_eq!(at(&facts, "/network"), network, "refused");
    }
    Ok(())
}

fn refused_requests(caller: &Caller) -> Outcome {
    for (arguments, code, words) in [
        (&["--mode", "workspace-write", "--workspace", "/"][..], "INVALID_REQUEST", "whole host"),
        (&["--workspace", "missing"], "INVALID_REQUEST", "ENOENT"),
        (&["--workdir", "/missing"], "INVALID_REQUEST", "--workdir"),
        (&["--mode", "danger-full-access", "--pids", "9"], "INVALID_REQUEST", "--pids"),
        (&["--script", "missing"], "INVALID_REQUEST", "ENOENT"),
    ] {
        let arguments = [arguments, &["--", "echo", "ran"]].concat();
        let (ended, facts) = run(caller, &arguments)?;
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(125), ""), "{arguments:?}");
        let message = at(&facts, "/error/message").as_str().unwrap_or_default();
        assert_eq!(ended.stderr, format!("dsh-run: {message}\n"), "{facts:#}");
        assert!(message.contains(words), "{facts:#}");
        for (pointer, expected) in [
            ("/outcome", json!("refused")),
            ("/error/code", json!(code)),
            ("/exit", Value::Null),
            ("/enforcement", Value::Null),
            ("/denied", Value::Null),
        ] {
            assert_eq!(at(&facts, pointer), &expected, "{pointer}: {facts:#}");
        }
    }
    // What is partial is refused where nothing less than all will do.
    let (_, facts) = run(caller, &["--", "true"])?;
    if at(&facts, "/enforcement/level") == "partial" {
        let (ended, facts) = run(caller, &["--require", "full", "--", "echo", "ran"])?;
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
        assert_eq!(at(&facts, "/error/code"), "PARTIAL_ENFORCEMENT", "{facts:#}");
        assert_eq!(at(&facts, "/outcome"), "refused");
    }
    Ok(())
}

fn withheld_variables(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let options = ["--mode", mode, "--pass-env", "KEPT_TOKEN", "--", "true"];
        let mut with_secrets = command(caller, &options);
        with_secrets.env("Z_TOKEN", "very").env("A_SECRET", "secret").env("KEPT_TOKEN", "x");
        with_secrets.env("BASH_ENV", "/x");
        finish(&mut with_secrets)?;
        assert_eq!(at(&read(caller)?, "/env_dropped"), &json!(["A_SECRET", "BASH_ENV", "Z_TOKEN"]));
        let text = std::fs::read_to_string(caller.path(FACTS))?;
        assert!(!text.contains("very"), "the facts give the value away");
    }
    let mut unconfined = command(caller, &["--mode", "danger-full-access", "--", "true"]);
    finish(unconfined.env("Z_TOKEN", "very"))?;
    assert_eq!(at(&read(caller)?, "/env_dropped"), &json!([]));
    Ok(())
}

/// A file for the command to write.
fn target(caller: &Caller, name: &Path) -> std::io::Result<std::fs::File> {
    let path = caller.make_file(name, "")?;
    std::fs::File::options().append(true).open(path)
}

fn granted_files(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let (output, error) =
            (target(caller, Path::new("output"))?, target(caller, Path::new("error"))?);
        let mut run = command(caller, &["--mode", mode, "--", "true"]);
        // What is only read is no grant.
        run.stdin(std::fs::File::open("/etc/passwd")?).stdout(output).stderr(error).status()?;
        let path = |name| caller.path(name).canonicalize().map(|path| path.display().to_string());
        let expected = json!([
            { "descriptor": 1, "path": path("output")? },
            { "descriptor": 2, "path": path("error")? },
        ]);
        assert_eq!(at(&read(caller)?, "/stdio"), &expected, "{mode}");
    }
    Ok(())
}

fn names_that_are_not_utf8(caller: &Caller) -> Outcome {
    let odd = OsString::from_vec(b"odd\xff".to_vec());
    caller.make_dir(&odd)?;
    let output = target(caller, &Path::new(&odd).join("file"))?;
    let mut run = command(caller, &["--workspace"]);
    run.arg(caller.path(&odd)).args(["--", "true"]).stdout(output).status()?;
    let facts = read(caller)?;
    let text = |pointer| at(&facts, pointer).as_str().unwrap_or_default().to_owned();
    assert!(text("/workspace").ends_with("/odd\u{fffd}"), "{facts:#}");
    assert!(text("/stdio/0/path").ends_with("/odd\u{fffd}/file"), "{facts:#}");
    for (pointer, path) in [
        ("/workspace_base64", caller.path(&odd)),
        ("/stdio/0/path_base64", caller.path(&odd).join("file")),
    ] {
        let expected = base64(path.canonicalize()?.as_os_str().as_encoded_bytes());
        assert_eq!(text(pointer), expected, "{facts:#}");
    }
    Ok(())
}

/// RFC 4648, for the few bytes that a test has.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_usize, |group, byte| group << 8 | usize::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let known = place <= chunk.len();
            let digit = char::from(ALPHABET[group >> (18 - 6 * place) & 63]);
            text.push(if known { digit } else { '=' });
        }
    }
    text
}
