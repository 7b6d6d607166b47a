//! How a profile is found: a rung, a built-in one, one of the caller's own by name, a file by path.

use std::fs;
use std::os::unix::fs::symlink;

use dsh_facts::{Network, SandboxMode};

use crate::calling::{OWN, facts_of, own_profile, script};
use crate::support::caller::{Caller, finish};
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    a_rung_and_a_built_in_one,
    one_of_the_callers_own,
    the_directory_that_the_environment_names,
    a_name_of_the_library_is_taken,
    a_file_by_its_path,
    what_a_file_extends_is_relative_to_the_file,
    names_that_nobody_has,
];

fn a_rung_and_a_built_in_one(caller: &Caller) -> Outcome {
    for (name, mode) in [
        ("read-only", SandboxMode::ReadOnly),
        ("workspace-write", SandboxMode::WorkspaceWrite),
        ("danger-full-access", SandboxMode::DangerFullAccess),
        ("protect-vcs", SandboxMode::WorkspaceWrite),
    ] {
        let (_, facts) = script(caller, &["--profile", name], "true")?;
        assert_eq!((facts.mode, facts.profile.as_deref()), (mode, Some(name)));
    }
    Ok(())
}

fn one_of_the_callers_own(caller: &Caller) -> Outcome {
    own_profile(caller, "mine", "extends = 'protect-vcs'\nnetwork = 'off'\n")?;
    own_profile(caller, "on-top", "extends = 'mine'\n")?;
    // Not where profiles are looked for, and so not in the way.
    caller.make_file("workspace/mine", "not a profile")?;
    caller.make_file("workspace/mine.toml", "not a profile")?;
    for name in ["mine", "on-top"] {
        let (_, facts) = script(caller, &["--profile", name], "true")?;
        assert_eq!((facts.mode, facts.network), (SandboxMode::WorkspaceWrite, Network::Off));
        // What protect-vcs protects is looked for.
        assert!(facts.missing.iter().any(|path| path.ends_with("/.git/hooks")), "{facts:?}");
    }
    Ok(())
}

/// XDG Base Directory Specification: an absolute `$XDG_CONFIG_HOME`, else `~/.config`.
fn the_directory_that_the_environment_names(caller: &Caller) -> Outcome {
    own_profile(caller, "mine", "extends = 'read-only'\nnetwork = 'off'\n")?;
    fs::create_dir_all(caller.path("xdg/dsh/profiles"))?;
    caller.make_file("xdg/dsh/profiles/mine.toml", "extends = 'read-only'\nnetwork = 'host'\n")?;
    let xdg = caller.path("xdg").to_string_lossy().into_owned();
    for (xdg, network) in [
        (Some(&*xdg), Network::Host),
        (Some("../xdg"), Network::Off),
        (Some(""), Network::Off),
        (None, Network::Off),
    ] {
        let mut command = caller.dsh_run(["--facts", "../facts.json", "--profile", "mine"]);
        command.args(["--", "true"]).envs(xdg.map(|xdg| ("XDG_CONFIG_HOME", xdg)));
        let (ended, facts) = facts_of(caller, &mut command)?;
        assert_eq!((ended.stderr.as_str(), facts.network), ("", network), "{xdg:?}");
    }
    let mut command = marked(caller, ["--profile", "mine"]);
    assert_refused(caller, command.env_remove("HOME"), &["there is no profile 'mine'"])
}

fn a_name_of_the_library_is_taken(caller: &Caller) -> Outcome {
    for name in ["read-only", "workspace-write", "protect-vcs"] {
        own_profile(caller, name, "extends = 'danger-full-access'\n")?;
        let (_, facts) = script(caller, &["--profile", name], "true")?;
        assert_ne!(facts.mode, SandboxMode::DangerFullAccess);
    }
    own_profile(caller, "mine", "extends = 'protect-vcs'\n")?;
    assert_eq!(script(caller, &["--profile", "mine"], "true")?.1.mode, SandboxMode::WorkspaceWrite);
    let listed = finish(&mut caller.dsh_run(["profiles"]))?.stdout;
    let built_in = listed.lines().filter(|line| line.contains("built in")).count();
    assert_eq!(built_in, 4, "{listed}");
    assert!(!listed.contains("protect-vcs.toml"), "{listed}");
    // By its path it can be had.
    let path = caller.path(OWN).join("protect-vcs.toml").to_string_lossy().into_owned();
    let (_, facts) = script(caller, &["--profile", &path], "true")?;
    assert_eq!(facts.mode, SandboxMode::DangerFullAccess);
    Ok(())
}

fn a_file_by_its_path(caller: &Caller) -> Outcome {
    let file = caller.make_file("plain.toml", "extends = 'read-only'\nnetwork = 'off'\n")?;
    fs::copy(&file, caller.path("no-ending"))?;
    symlink("plain.toml", caller.path("link.toml"))?;
    caller.make_file("workspace/here.toml", "extends = 'read-only'\nnetwork = 'off'\n")?;
    let absolute = file.to_string_lossy().into_owned();
    for path in
        [&*absolute, "../plain.toml", "../no-ending", "../link.toml", "here.toml", "./here.toml"]
    {
        let (_, facts) = script(caller, &["--profile", path], "true")?;
        assert_eq!((facts.network, facts.profile.as_deref()), (Network::Off, Some(path)));
    }
    // An unusual name is a name like any other.
    let odd = "../odd \u{fc}\n'\".toml";
    caller.make_file(odd.trim_start_matches("../"), "extends = 'read-only'\n")?;
    let (_, facts) = script(caller, &["--profile", odd], "true")?;
    assert_eq!(facts.profile.as_deref(), Some(odd));
    Ok(())
}

fn what_a_file_extends_is_relative_to_the_file(caller: &Caller) -> Outcome {
    for name in ["a", "a/b", "c"] {
        caller.make_dir(name)?;
    }
    caller.make_file("a/top.toml", "extends = './b/middle.toml'\n")?;
    caller.make_file("a/b/middle.toml", "extends = '../../c/base.toml'\npids = 600\n")?;
    caller.make_file("c/base.toml", "extends = 'workspace-write'\nnetwork = 'off'\n")?;
    // The same name where the command starts must not count.
    caller.make_file("workspace/base.toml", "extends = 'danger-full-access'\n")?;
    // A link is a place of its own: relative to it, there is no b.
    symlink("../a/top.toml", caller.path("c/link.toml"))?;
    let (_, facts) = script(caller, &["--profile", "../a/top.toml"], "true")?;
    assert_eq!((facts.mode, facts.network), (SandboxMode::WorkspaceWrite, Network::Off));
    let mut command = marked(caller, ["--profile", "../c/link.toml"]);
    assert_refused(caller, &mut command, &["c/./b/middle.toml", "ENOENT"])
}

fn names_that_nobody_has(caller: &Caller) -> Outcome {
    for (name, says) in [
        ("nobody", "there is no profile 'nobody'"),
        ("", "there is no profile ''"),
        ("..", "there is no profile '..'"),
        ("Read-Only", "there is no profile 'Read-Only'"),
        ("~", "there is no profile '~'"),
    ] {
        let mut command = marked(caller, ["--profile", name]);
        let says = [says, "dsh-run profiles lists them", "a file is named by its path"];
        assert_refused(caller, &mut command, &says)?;
        assert_refused(caller, &mut caller.dsh_run(["profiles", "show", name]), &says)?;
    }
    for path in ["../nobody", "nobody.toml", "~/nobody"] {
        let says = [path, "ENOENT", "name a file that can be read"];
        assert_refused(caller, &mut marked(caller, ["--profile", path]), &says)?;
    }
    Ok(())
}
