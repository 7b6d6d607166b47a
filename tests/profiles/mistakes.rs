//! Profiles with mistakes: one line that says where and what, exit 125, and nothing ran.

use std::fs;

use dsh_facts::{ErrorCode, Outcome as RunOutcome};

use crate::calling::{own_profile, resolved, run};
use crate::support::caller::{Caller, finish};
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    mistakes_in_one_file,
    what_goes_beyond_its_base,
    circles,
    the_mistake_of_a_base_is_told_there,
    every_command_tells_it,
    a_file_that_the_command_could_replace,
];

const HEAD: &str = "extends = 'workspace-write'\n";

/// A line below [`HEAD`], and what the refusal says: first the place.
const MISTAKES: &[(&str, &[&str])] = &[
    ("netwrok = 'off'", &["p.toml:2:1: unknown field `netwrok`", "`network`"]),
    ("mode = 'read-only'", &["p.toml:2:1: unknown field `mode`"]),
    ("environment.dorp = ['A']", &["p.toml:2:13: unknown field `dorp`", "`drop`"]),
    ("[[rule]]\ncall = ['mount']", &["p.toml:3:1: unknown field `call`", "`calls`"]),
    ("network = 'lan'", &["p.toml:2:11: ", "lan", "loopback"]),
    ("network = \"off", &["p.toml:2:"]),
    ("pids = 0", &["p.toml:2:8: ", "1 to 4194304"]),
    ("pids = -1", &["p.toml:2:8: "]),
    ("pids = 4194305", &["p.toml:2:8: ", "1 to 4194304"]),
    ("pids = '100'", &["p.toml:2:8: "]),
    ("scratch_size = 1", &["p.toml:2:16: "]),
    ("scratch_size = '0'", &["p.toml:2:16: ", "more than 0 bytes"]),
    ("scratch_size = '101%'", &["p.toml:2:16: ", "25%"]),
    ("writable = 'x'", &["p.toml:2:12: "]),
    ("hidden = ['']", &["p.toml:2:10: ", "not empty"]),
    ("hidden = ['a',\n  '~root/.ssh']", &["p.toml:2:10: ", "'~root/.ssh'", "own home directory"]),
    ("hidden = [\"a\\u0000b\"]", &["p.toml:2:10: ", "NUL"]),
    ("environment.set = { 'A=B' = 'c' }", &["p.toml:2:", "= nor NUL"]),
    ("environment.set = { A = 1 }", &["p.toml:2:25: "]),
    ("environment.pass = ['']", &["p.toml:2:20: ", "not empty"]),
    ("rule = [{ calls = ['mout'], errno = 'EPERM', why = 'x' }]", &["p.toml:2:19: ", "'mout'"]),
    (
        "rule = [{ calls = ['mount'], errno = 'EIO', why = 'x' }]",
        &["p.toml:2:38: ", "EIO", "EPERM"],
    ),
    ("rule = [{ calls = ['mount'], errno = 'EPERM' }]", &["p.toml:2:9: ", "why"]),
    ("extends = 'read-only'", &["p.toml:2:1: duplicate key"]),
    ("description = '\u{fc}\u{fc}' x", &["p.toml:2:20: "]),
    ("=", &["p.toml:2:1: "]),
];

fn mistakes_in_one_file(caller: &Caller) -> Outcome {
    for (line, says) in MISTAKES {
        fs::write(caller.path("p.toml"), format!("{HEAD}{line}\n"))?;
        assert_refused(caller, &mut marked(caller, ["--profile", "../p.toml"]), says)?;
    }
    for (text, says) in [
        ("", "p.toml:1:1: missing field `extends`"),
        ("network = 'off'\n", "p.toml:1:1: missing field `extends`"),
        ("extends = ''\n", "there is no profile ''"),
        ("extends = ['read-only']\n", "p.toml:1:11: "),
        ("\u{feff}extends = 'read-only'\nx = 1\n", "p.toml:2:1: unknown field `x`"),
        ("extends = 'read-only'\r\n\r\nx = 1\r\n", "p.toml:3:1: unknown field `x`"),
    ] {
        fs::write(caller.path("p.toml"), text)?;
        assert_refused(caller, &mut marked(caller, ["--profile", "../p.toml"]), &[says])?;
    }
    Ok(())
}

fn what_goes_beyond_its_base(caller: &Caller) -> Outcome {
    let base = "extends = 'workspace-write'\nnetwork = 'loopback'\npids = 50\n\
                scratch_size = '10%'\nenvironment = { clear = true, drop = ['CI'] }\n";
    caller.make_file("base.toml", base)?;
    for (line, says) in [
        ("network = 'host'", &["p.toml:2:11: network = host", "allows loopback"][..]),
        ("pids = 51", &["p.toml:2:8: pids = 51", "allows 50"]),
        ("scratch_size = '11%'", &["p.toml:2:16: scratch_size = 11%", "allows 10%"]),
        ("environment.clear = false", &["p.toml:2:21: clear = false", "clears the environment"]),
        ("environment.pass = ['CI']", &["p.toml:2:21: pass = CI", "withholds it"]),
        ("environment.pass = ['A']", &["p.toml:2:21: pass = A", "clears the environment"]),
    ] {
        fs::write(caller.path("p.toml"), format!("extends = './base.toml'\n{line}\n"))?;
        let says = [says, &["goes beyond ./base.toml", "can only narrow"]].concat();
        assert_refused(caller, &mut marked(caller, ["--profile", "../p.toml"]), &says)?;
    }
    for (text, says) in [
        ("extends = 'read-only'\nwritable = ['~/x']\n", "p.toml:2:13: writable = ~/x goes beyond"),
        ("extends = 'danger-full-access'\nhidden = ['x']\n", "p.toml:2:11: danger-full-access"),
        ("extends = 'danger-full-access'\nprotected = ['x']\n", "p.toml:2:14: danger-full-access"),
        ("extends = 'danger-full-access'\nnetwork = 'host'\n", "p.toml:2:11: danger-full-access"),
    ] {
        fs::write(caller.path("p.toml"), text)?;
        assert_refused(caller, &mut marked(caller, ["--profile", "../p.toml"]), &[says])?;
    }
    Ok(())
}

fn circles(caller: &Caller) -> Outcome {
    caller.make_dir("there")?;
    own_profile(caller, "self", "extends = 'self'\n")?;
    own_profile(caller, "one", "extends = 'two'\n")?;
    own_profile(caller, "two", "\n  extends = 'one'\n")?;
    caller.make_file("a.toml", "extends = './there/b.toml'\n")?;
    caller.make_file("there/b.toml", "extends = '../link.toml'\n")?;
    std::os::unix::fs::symlink("a.toml", caller.path("link.toml"))?;
    for (profile, says) in [
        ("self", &["self.toml:1:11: ", "self extends self is a circle"][..]),
        ("one", &["two.toml:2:13: ", "one extends two extends one is a circle"]),
        ("../a.toml", &["there/b.toml:1:11: ", "circle", "extends, in the end, a rung"]),
    ] {
        assert_refused(caller, &mut marked(caller, ["--profile", profile]), says)?;
    }
    Ok(())
}

fn the_mistake_of_a_base_is_told_there(caller: &Caller) -> Outcome {
    own_profile(caller, "top", "extends = 'base'\npids = 7\n")?;
    own_profile(caller, "base", "extends = 'read-only'\n\nnetwrok = 'off'\n")?;
    assert_refused(caller, &mut marked(caller, ["--profile", "top"]), &["base.toml:3:1: unknown"])?;
    own_profile(caller, "base", "extends = 'nobody'\n")?;
    let says = ["there is no profile 'nobody'"];
    assert_refused(caller, &mut marked(caller, ["--profile", "top"]), &says)
}

fn every_command_tells_it(caller: &Caller) -> Outcome {
    own_profile(caller, "bad", "extends = 'read-only'\nnetwrok = 'off'\n")?;
    for arguments in [
        &["explain", "--profile", "bad"][..],
        &["explain", "--json", "--profile", "bad"],
        &["profiles", "show", "bad"],
        &["--profile", "bad", "--", "true"],
    ] {
        assert_refused(caller, &mut caller.dsh_run(arguments), &["bad.toml:2:1: unknown field"])?;
    }
    // So do the facts, whatever a run before has left there.
    caller.make_file("facts.json", "old")?;
    let (ended, facts) = run(caller, &["--profile", "bad", "--", "true"])?;
    let error = facts.error.ok_or("no error")?;
    assert_eq!((facts.outcome, facts.exit), (RunOutcome::Refused, None));
    assert_eq!(ended.stderr.trim_end(), format!("dsh-run: {}", error.message));
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    // The list goes on.
    own_profile(caller, "good", "extends = 'read-only'\ndescription = 'fine'\n")?;
    let listed = finish(&mut caller.dsh_run(["profiles"]))?;
    assert_eq!((listed.status.code(), listed.stderr.as_str()), (Some(0), ""));
    let line =
        |name: &str| listed.stdout.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    assert!(
        line("bad").is_some_and(|line| line.contains("cannot be used: ") && line.contains(":2:1"))
    );
    assert!(line("good").is_some_and(|line| line.ends_with("fine")), "{}", listed.stdout);
    Ok(())
}

/// Every name on the way to a file that governs the run counts.
fn a_file_that_the_command_could_replace(caller: &Caller) -> Outcome {
    use std::os::unix::fs::symlink;
    for name in ["workspace/sub", "extra"] {
        caller.make_dir(name)?;
    }
    let text = "extends = 'workspace-write'\n";
    caller.make_file("outside.toml", text)?;
    for name in ["workspace/sub/p.toml", "extra/p.toml"] {
        caller.make_file(name, text)?;
    }
    caller.make_file("chained.toml", "extends = './workspace/sub/p.toml'\n")?;
    symlink("workspace/sub/p.toml", caller.path("into.toml"))?;
    symlink("../outside.toml", caller.path("workspace/out.toml"))?;
    symlink("..", caller.path("workspace/up"))?;
    for (options, root) in [
        (&["--profile", "sub/p.toml"][..], "workspace"),
        (&["--profile", "../into.toml"], "workspace"),
        (&["--profile", "./out.toml"], "workspace"),
        (&["--profile", "up/outside.toml"], "workspace"),
        (&["--profile", "../chained.toml"], "workspace"),
        (&["--profile", "../extra/p.toml", "--writable", "../extra"], "extra"),
    ] {
        let root = resolved(caller, root);
        let says = ["the profile ", &*root, "where the command could replace it"];
        assert_refused(caller, &mut marked(caller, options), &says)?;
        // Where nothing is writable, nothing is replaced.
        let narrower = [options, &["--mode", "read-only", "--", "true"]].concat();
        let ended = finish(&mut caller.dsh_run(narrower))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{options:?}");
    }
    // The persona's own directory of profiles can lie in a workspace too.
    own_profile(caller, "mine", text)?;
    let options = ["--workspace", "../home/.config", "--profile", "mine"];
    assert_refused(caller, &mut marked(caller, options), &["holds your profiles"])?;
    let options = ["--allow-home", "--workspace", "../home/.config", "--profile", "mine"];
    assert_refused(caller, &mut marked(caller, options), &["the profile ", "mine.toml"])
}
