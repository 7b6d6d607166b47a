use std::fs;

use super::*;

/// Profiles of these names and texts in one directory; loads the first.
fn load(files: &[(&str, &str)]) -> Result<Profile, String> {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    let first = directory.path().join(files[0].0);
    let place = format!("{}/", directory.path().display());
    Profile::load(first.to_str().expect("utf-8"))
        .map_err(|error| error.to_string().replace(&place, ""))
}

fn refusal(files: &[(&str, &str)]) -> String {
    load(files).expect_err("refused")
}

#[test]
fn a_chain_adds_up() {
    let profile = load(&[
        ("top.toml", "extends = './base.toml'\nnetwork = 'off'\nhidden = ['~/.ssh']\npids = 100\n"),
        (
            "base.toml",
            "extends = 'workspace-write'\nhidden = ['~/.aws']\nwritable = ['~/.cargo']\npids = 200\n\
             environment.set = { A = '1' }\n",
        ),
    ])
    .expect("a profile");
    assert_eq!(profile.mode, SandboxMode::WorkspaceWrite);
    assert_eq!(profile.network, Some(Network::Off));
    assert_eq!(profile.pids, Some(100));
    let hidden: Vec<_> = profile.hidden.iter().map(ProfilePath::as_str).collect();
    assert_eq!(hidden, ["~/.aws", "~/.ssh"]);
    assert_eq!(profile.extends, ["./base.toml", "workspace-write"]);
    assert_eq!(profile.files.len(), 2);
}

#[test]
fn a_rung_is_a_profile() {
    let profile = Profile::load("read-only").expect("a rung");
    assert_eq!((profile.mode, profile.files.len()), (SandboxMode::ReadOnly, 0));
}

#[test]
fn every_built_in_profile_loads() {
    for (name, file) in profile_names() {
        if file.is_none() {
            Profile::load(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn a_circle_is_refused_where_it_closes() {
    let own = refusal(&[("a.toml", "extends = 'a.toml'\n")]);
    assert!(own.starts_with("a.toml:1:11: ") && own.contains("circle"), "{own}");
    let two =
        refusal(&[("a.toml", "extends = 'b.toml'\n"), ("b.toml", "\nextends = './a.toml'\n")]);
    assert!(two.starts_with("b.toml:2:11: "), "{two}");
    assert!(two.contains("a.toml extends b.toml extends ./a.toml"), "{two}");
}

#[test]
fn going_beyond_what_is_extended_is_refused_where_it_stands() {
    let base = (
        "base.toml",
        "extends = 'workspace-write'\nnetwork = 'off'\npids = 50\nscratch_size = '1M'\n\
         environment = { clear = true, drop = ['CI'] }\n",
    );
    for (line, place, words) in [
        (
            "network = 'loopback'",
            "2:11",
            "network = loopback goes beyond base.toml, which allows off",
        ),
        ("pids = 51", "2:8", "pids = 51 goes beyond base.toml, which allows 50"),
        ("scratch_size = '2M'", "2:16", "which allows 1048576"),
        ("environment.clear = false", "2:21", "which clears the environment"),
        ("environment.pass = ['CI']", "2:21", "which withholds it"),
    ] {
        let text = format!("extends = 'base.toml'\n{line}\n");
        let error = refusal(&[("top.toml", &text), base]);
        assert!(error.starts_with(&format!("top.toml:{place}: ")), "{line}: {error}");
        assert!(error.contains(words), "{line}: {error}");
    }
    for same in ["network = 'off'", "pids = 50", "scratch_size = '1M'", "environment.clear = true"]
    {
        let text = format!("extends = 'base.toml'\n{same}\n");
        assert!(load(&[("top.toml", &text), base]).is_ok(), "{same}");
    }
}

#[test]
fn what_the_rung_cannot_have_is_refused() {
    let error = refusal(&[("a.toml", "extends = 'read-only'\nwritable = ['x']\n")]);
    assert!(error.starts_with("a.toml:2:13: writable = x goes beyond read-only"), "{error}");
    let error = refusal(&[("a.toml", "extends = 'danger-full-access'\nhidden = ['x']\n")]);
    assert!(error.contains("confines nothing, so hidden cannot be kept"), "{error}");
    let mode = refusal(&[("a.toml", "extends = 'read-only'\nmode = 'workspace-write'\n")]);
    assert!(mode.starts_with("a.toml:2:1: unknown field `mode`"), "{mode}");
}

#[test]
fn what_is_not_there_is_told() {
    let error = refusal(&[("a.toml", "extends = 'no-such'\n")]);
    assert!(
        error.contains("no profile 'no-such'") && error.contains("dsh-run profiles"),
        "{error}"
    );
    let error = refusal(&[("a.toml", "extends = './none.toml'\n")]);
    assert!(error.contains("none.toml") && error.contains("ENOENT"), "{error}");
}

#[test]
fn what_is_no_profile_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.toml");
    let refusal = || Profile::load(path.to_str().expect("utf-8")).expect_err("refused");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    assert_eq!(refusal(), ProfileError::NotAFile { path: path.clone() });
    fs::remove_file(&path).expect("removed");
    fs::File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a large file");
    assert_eq!(refusal(), ProfileError::TooLarge { path: path.clone() });
}

#[test]
fn what_is_shown_is_toml_without_control_characters() {
    let odd = "a \u{1b}[31m \u{9b} \u{7f} \u{301} \n \"\\";
    let escaped = "a \\u001B[31m \\u009B \\u007F \u{301} \\n \\\"\\\\";
    let text = format!(
        "extends = 'read-only'\ndescription = \"{escaped}\"\nhidden = [\"{escaped}\"]\n\
         environment.set = {{ \"{escaped}\" = \"{escaped}\" }}\n\
         [[rule]]\nwhy = \"{escaped}\"\ncalls = ['mount']\nerrno = 'EPERM'\n"
    );
    let shown = load(&[("a.toml", &text)]).expect("a profile").to_string();
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown}");
    let value: toml::Value = toml::from_str(&shown).expect("TOML");
    for value in [
        &value["description"],
        &value["hidden"][0],
        &value["environment"]["set"][odd],
        &value["rule"][0]["why"],
    ] {
        assert_eq!(value.as_str(), Some(odd), "{shown}");
    }
}
