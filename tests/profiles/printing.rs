//! What `profiles`, `explain`, `completions` and `man` print.

use std::fs;
use std::io;
use std::process::Command;

use serde_json::Value;

use crate::calling::{OWN, own_profile, run};
use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, Stop, skip, tests};

tests![
    the_list,
    a_profile_with_every_key,
    every_built_in_profile,
    explain_agrees_with_the_facts,
    control_characters_stay_out_of_terminals,
    completions,
    the_manual_page,
];

/// Standard output of a run of `dsh-run` that must succeed and say nothing else.
fn printed(command: &mut Command) -> Result<String, Stop> {
    let ended = finish(command)?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{command:?}");
    Ok(ended.stdout)
}

fn shown(caller: &Caller, profile: &str) -> Result<toml::Table, Stop> {
    let text = printed(&mut caller.dsh_run(["profiles", "show", profile]))?;
    Ok(toml::from_str(&text).map_err(|error| format!("{error}\n{text}"))?)
}

fn the_list(caller: &Caller) -> Outcome {
    own_profile(caller, "zebra", "extends = 'read-only'\ndescription = 'the last'\n")?;
    own_profile(caller, "ant", "extends = 'zebra'\n")?;
    // No profiles: other endings, directories, and a name that would be taken for a path.
    fs::create_dir(caller.path(OWN).join("directory.toml"))?;
    for name in ["notes.txt", "ant", ".toml", "x.toml.toml"] {
        caller.make_file(format!("{OWN}/{name}"), "extends = 'read-only'\n")?;
    }
    let text = printed(&mut caller.dsh_run(["profiles"]))?;
    let names: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let built_in = ["read-only", "workspace-write", "danger-full-access", "protect-vcs"];
    let expected = [&built_in[..], &["ant", "directory", "zebra", "Your"]].concat();
    assert_eq!(names, expected, "{text}");
    assert!(text.lines().any(|line| line.starts_with("zebra ") && line.ends_with("  the last")));
    let unusable = |line: &str| line.starts_with("directory ") && line.contains("cannot be used: ");
    assert!(text.lines().any(unusable), "{text}");
    assert!(text.ends_with(&format!("{}\n", caller.path(OWN).display())), "{text}");
    // Without any of the caller's own, and without a place for them.
    fs::remove_dir_all(caller.path("home/.config"))?;
    assert_eq!(printed(&mut caller.dsh_run(["profiles"]))?.lines().count(), 6);
    let without = printed(caller.dsh_run(["profiles"]).env_remove("HOME"))?;
    assert_eq!(without.lines().count(), 4, "{without}");
    Ok(())
}

fn a_profile_with_every_key(caller: &Caller) -> Outcome {
    own_profile(
        caller,
        "base",
        "extends = 'workspace-write'\nhidden = ['~/.ssh']\nwritable = ['~/a']\npids = 900\n\
         environment = { clear = true, pass = ['P'], drop = ['D', 'C'], set = { A = '1', 'odd key' = '2' } }\n\
         [[rule]]\nwhy = 'base \"rule\"'\ncalls = ['mount', 'umount2']\nerrno = 'EPERM'\n",
    )?;
    let top = "extends = 'base'\ndescription = 'line 1\\nline 2'\nnetwork = 'off'\n\
               scratch_size = '1M'\npids = 800\nhidden = ['/h \\ h']\nprotected = [\"p'\\\"p\"]\n\
               writable = ['b']\n[environment]\npass = ['P']\nset = { A = '3' }\n";
    own_profile(caller, "top", &top.replace("'line 1\\nline 2'", "\"line 1\\nline 2\""))?;
    let expected: toml::Table = toml::from_str(
        "description = \"line 1\\nline 2\"\nmode = 'workspace-write'\nnetwork = 'off'\n\
         scratch_size = '1048576'\npids = 800\nwritable = ['~/a', 'b']\n\
         hidden = ['~/.ssh', '/h \\ h']\nprotected = [\"p'\\\"p\"]\n\
         [environment]\nclear = true\npass = ['P']\ndrop = ['C', 'D']\n\
         set = { A = '3', 'odd key' = '2' }\n\
         [[rule]]\nwhy = 'base \"rule\"'\ncalls = ['mount', 'umount2']\nerrno = 'EPERM'\n",
    )?;
    assert_eq!(shown(caller, "top")?, expected);
    Ok(())
}

fn every_built_in_profile(caller: &Caller) -> Outcome {
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        let table = shown(caller, mode)?;
        assert_eq!(table["mode"].as_str(), Some(mode));
        let confines = mode != "danger-full-access";
        assert_eq!(table.contains_key("pids"), confines, "{table:?}");
        assert_eq!(table["network"].as_str(), Some(if confines { "loopback" } else { "host" }));
    }
    let table = shown(caller, "protect-vcs")?;
    assert_eq!(table["mode"].as_str(), Some("workspace-write"));
    let protected = table["protected"].as_array().ok_or("no array")?;
    assert!(protected.contains(&".git/hooks".into()) && protected.contains(&".git/config".into()));
    Ok(())
}

fn explain_agrees_with_the_facts(caller: &Caller) -> Outcome {
    for name in ["workspace/fixed", "home/cache", "home/.ssh"] {
        caller.make_dir(name)?;
    }
    own_profile(
        caller,
        "mine",
        "extends = 'workspace-write'\nnetwork = 'off'\nscratch_size = '7M'\n\
         writable = ['~/cache', '~/none']\nhidden = ['~/.ssh', '~/nothing']\n\
         protected = ['fixed', 'not there']\nenvironment.drop = ['PLAIN']\n",
    )?;
    for options in [
        &["--mode", "read-only"][..],
        &["--mode", "workspace-write", "--hide", "fixed", "--protect", "../home/cache"],
        &["--mode", "workspace-write", "--writable", "../home/cache", "--network", "host"],
        &["--mode", "danger-full-access"],
        &["--profile", "mine"],
        &["--profile", "mine", "--mode", "read-only"],
        &["--profile", "mine", "--hide", "fixed", "--scratch-size", "1M"],
        &["--profile", "protect-vcs"],
    ] {
        let mut command = caller.dsh_run(["explain", "--json"]);
        let text = printed(command.args(options).env("PLAIN", "p").env("API_TOKEN", "t"))?;
        let explained: Value = serde_json::from_str(&text)?;
        let mut command = caller.dsh_run(["--facts", "../facts.json"]);
        command.args(options).args(["--", "true"]).env("PLAIN", "p").env("API_TOKEN", "t");
        let (ended, facts) = crate::calling::facts_of(caller, &mut command)?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{options:?}");
        let facts = serde_json::to_value(&facts)?;
        for key in ["mode", "workspace", "network", "env_dropped"] {
            assert_eq!(explained[key], facts[key], "{options:?}: {key}");
        }
        // Empty lists and absent names are left out of the facts.
        let or =
            |value: &Value, default: Value| if value.is_null() { default } else { value.clone() };
        for key in ["hidden", "protected", "missing"] {
            assert_eq!(explained[key], or(&facts[key], Value::Array(vec![])), "{options:?}: {key}");
        }
        assert_eq!(or(&explained["profile"], Value::Null), facts["profile"], "{options:?}");
        let confines = facts["mode"] != "danger-full-access";
        assert!(!confines || explained["writable"] == facts["writable"], "{options:?}");
        let gaps = or(&facts["enforcement"]["gaps"], Value::Array(vec![]));
        assert_eq!(explained["gaps"], gaps, "{options:?}");
        let layers = facts["enforcement"]["layers"].as_array().into_iter().flatten();
        let layers: Value = layers.map(|layer| layer["layer"].clone()).collect();
        assert_eq!(sorted(&explained["layers"]), sorted(&layers), "{options:?}");
    }
    Ok(())
}

fn sorted(value: &Value) -> Vec<&str> {
    let mut words: Vec<_> =
        value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.sort_unstable();
    words
}

fn control_characters_stay_out_of_terminals(caller: &Caller) -> Outcome {
    let odd = "\u{1b}[31m\r\u{9b}1m\nx";
    let escaped = "\\u001B[31m\\r\\u009B1m\\nx";
    caller.make_dir(format!("workspace/{odd}"))?;
    caller.make_dir(format!("workspace/{odd}/w"))?;
    let text = format!(
        "extends = 'workspace-write'\ndescription = \"{escaped}\"\nhidden = [\"{escaped}/none\"]\n\
         protected = [\"{escaped}\"]\nwritable = [\"{escaped}/w\"]\n\
         [environment]\ndrop = [\"{escaped}\"]\nset = {{ \"{escaped}\" = \"{escaped}\" }}\n\
         [[rule]]\nwhy = \"{escaped}\"\ncalls = ['mount']\nerrno = 'EPERM'\n"
    );
    own_profile(caller, odd, &text)?;
    own_profile(caller, "mine", &text)?;
    own_profile(caller, "bad", &format!("extends = \"{escaped}\"\n"))?;
    for arguments in [
        &["profiles"][..],
        &["profiles", "show", odd],
        &["explain", "--profile", odd],
        &["explain", "--json", "--profile", odd],
        &["explain", "--profile", "mine", "--hide", odd],
    ] {
        let mut command = caller.dsh_run(arguments);
        let text = printed(command.env(odd, odd).env(format!("{odd}TOKEN"), "t"))?;
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with('x')), "a line more: {text}");
    }
    let (ended, facts) = run(caller, &["--profile", odd, "--", "true"])?;
    assert_eq!((ended.status.code(), facts.profile.as_deref()), (Some(0), Some(odd)));
    Ok(())
}

/// Hands text to a program that checks it.
fn checked_by(
    caller: &Caller,
    program: &str,
    arguments: &[&str],
    text: &str,
) -> io::Result<String> {
    fs::write(caller.path("text"), text)?;
    let mut command = caller.command(program);
    command.args(arguments).arg(caller.path("text"));
    let ended = finish(&mut command)?;
    Ok(format!("{}{}", if ended.status.success() { "" } else { "failed " }, ended.stderr))
}

fn completions(caller: &Caller) -> Outcome {
    let mut lacking = Vec::new();
    for (shell, arguments) in [
        ("bash", &["-n"][..]),
        ("zsh", &["-n"]),
        ("fish", &["--no-config", "--no-execute"]),
        ("elvish", &[]),
        ("powershell", &[]),
    ] {
        let text = printed(&mut caller.dsh_run(["completions", shell]))?;
        for word in ["profile", "hide", "protect", "doctor", "completions"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{shell}");
        if arguments.is_empty() {
            continue;
        }
        match checked_by(caller, shell, arguments, &text) {
            Ok(complaint) => assert_eq!(complaint, "", "{shell}"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => lacking.push(shell),
            Err(error) => return Err(error.into()),
        }
    }
    if lacking.is_empty() { Ok(()) } else { skip(format!("not installed: {}", lacking.join(", "))) }
}

fn the_manual_page(caller: &Caller) -> Outcome {
    let text = printed(&mut caller.dsh_run(["man"]))?;
    for option in ["profile", "hide", "protect", "writable"] {
        assert!(text.contains(&format!("\\-\\-{option}")), "no {option}");
    }
    match checked_by(caller, "groff", &["-man", "-ww", "-z", "-Tutf8"], &text) {
        Ok(complaint) => assert_eq!(complaint, ""),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return skip("groff is not installed");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
