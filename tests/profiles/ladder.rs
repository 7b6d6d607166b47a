//! The order of precedence: the rung, the profile that narrows it, the options that narrow the
//! profile. Nothing goes beyond what stands below it.

use dsh_facts::{ErrorCode, Network, Outcome as RunOutcome, SandboxMode};

use crate::calling::{own_profile, run};
use crate::support::caller::{Caller, finish};
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    options_that_go_beyond_the_profile,
    options_that_narrow_the_profile,
    what_no_profile_states_may_be_raised,
    the_widest_rung_keeps_nothing_back,
    a_refusal_is_in_the_facts,
];

const WRITES: &str = "extends = 'workspace-write'\n";

/// A profile, options beside it, and what the refusal says.
const BEYOND: &[(&str, &[&str], &[&str])] = &[
    (
        "extends = 'read-only'",
        &["--mode", "workspace-write"],
        &["--mode workspace-write", "read-only"],
    ),
    ("extends = 'read-only'", &["--mode", "danger-full-access"], &["--mode danger", "read-only"]),
    (WRITES, &["--mode", "danger-full-access"], &["--mode danger", "workspace-write"]),
    ("network = 'off'", &["--network", "loopback"], &["--network loopback", "allows off"]),
    ("network = 'off'", &["--network", "host"], &["--network host", "allows off"]),
    ("network = 'loopback'", &["--network", "host"], &["--network host", "allows loopback"]),
    ("pids = 100", &["--pids", "101"], &["--pids 101", "allows 100"]),
    ("scratch_size = '1M'", &["--scratch-size", "2M"], &["--scratch-size 2097152", "1048576"]),
    ("scratch_size = '1M'", &["--scratch-size", "50%"], &["--scratch-size 50%", "1048576"]),
    ("scratch_size = '1%'", &["--scratch-size", "2%"], &["--scratch-size 2%", "allows 1%"]),
    ("environment.drop = ['API_TOKEN']", &["--pass-env", "API_TOKEN"], &["--pass-env API_TOKEN"]),
];

fn options_that_go_beyond_the_profile(caller: &Caller) -> Outcome {
    for &(text, options, says) in BEYOND {
        let base = if text.starts_with("extends") { "" } else { WRITES };
        own_profile(caller, "mine", &format!("{base}{text}\n"))?;
        // It is a ceiling from whatever depth of a chain.
        own_profile(caller, "above", "extends = 'mine'\n")?;
        for profile in ["mine", "above"] {
            let mut command = marked(caller, ["--profile", profile].iter().chain(options));
            let name = format!("goes beyond the profile {profile}");
            let says = [says, &[&*name, "can only be narrowed"]].concat();
            assert_refused(caller, &mut command, &says)?;
        }
    }
    Ok(())
}

fn options_that_narrow_the_profile(caller: &Caller) -> Outcome {
    let text = "extends = 'workspace-write'\nnetwork = 'loopback'\npids = 1000\n\
                scratch_size = '2M'\nenvironment.drop = ['API_TOKEN']\n";
    own_profile(caller, "mine", text)?;
    for (options, mode, network) in [
        (&[][..], SandboxMode::WorkspaceWrite, Network::Loopback),
        (&["--mode", "read-only"], SandboxMode::ReadOnly, Network::Loopback),
        (&["--mode", "workspace-write"], SandboxMode::WorkspaceWrite, Network::Loopback),
        (&["--network", "off"], SandboxMode::WorkspaceWrite, Network::Off),
        (&["--network", "loopback"], SandboxMode::WorkspaceWrite, Network::Loopback),
        (&["--pids", "999"], SandboxMode::WorkspaceWrite, Network::Loopback),
        (&["--scratch-size", "2M"], SandboxMode::WorkspaceWrite, Network::Loopback),
        (&["--pass-env", "OTHER_TOKEN"], SandboxMode::WorkspaceWrite, Network::Loopback),
    ] {
        let arguments = [&["--profile", "mine"], options, &["--", "true"]].concat();
        let (ended, facts) = run(caller, &arguments)?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{options:?}");
        assert_eq!((facts.mode, facts.network), (mode, network), "{options:?}");
    }
    Ok(())
}

fn what_no_profile_states_may_be_raised(caller: &Caller) -> Outcome {
    own_profile(caller, "mine", "extends = 'workspace-write'\ndescription = 'nothing else'\n")?;
    for options in [&["--network", "host"][..], &["--pids", "5000"], &["--scratch-size", "50%"]] {
        let arguments = [&["--profile", "mine"], options, &["--", "true"]].concat();
        let (ended, _) = run(caller, &arguments)?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{options:?}");
    }
    Ok(())
}

fn the_widest_rung_keeps_nothing_back(caller: &Caller) -> Outcome {
    own_profile(caller, "all", "extends = 'danger-full-access'\nenvironment.drop = ['PLAIN']\n")?;
    let widest: [&[&str]; 3] = [
        &["--mode", "danger-full-access"],
        &["--profile", "danger-full-access"],
        &["--profile", "all"],
    ];
    for base in widest {
        for (options, named) in [
            (["--hide", "/etc/passwd"], "--hide"),
            (["--protect", "x"], "--protect"),
            (["--hide", "missing"], "--hide"),
        ] {
            let mut command = marked(caller, base.iter().chain(&options));
            let says = ["danger-full-access confines nothing", named, "a narrower mode"];
            assert_refused(caller, &mut command, &says)?;
        }
    }
    // It can be narrowed by an option, and then keeps them.
    let options = ["--profile", "all", "--mode", "read-only", "--hide", "/etc/passwd"];
    let (ended, facts) = run(caller, &[&options[..], &["--", "cat", "/etc/passwd"]].concat())?;
    assert_eq!((ended.stdout.as_str(), facts.hidden.len()), ("", 1), "{}", ended.stderr);
    // Its environment is the profile's all the same.
    let mut command = caller.dsh_run(["--profile", "all", "--", "env"]);
    let ended = finish(command.env("PLAIN", "p").env("OTHER", "o"))?;
    assert!(!ended.stdout.contains("PLAIN=") && ended.stdout.contains("OTHER=o"));
    Ok(())
}

fn a_refusal_is_in_the_facts(caller: &Caller) -> Outcome {
    own_profile(caller, "mine", "extends = 'read-only'\nnetwork = 'off'\n")?;
    let options = ["--profile", "mine", "--network", "host", "--", "true"];
    let (ended, facts) = run(caller, &options)?;
    assert_eq!((ended.status.code(), facts.outcome), (Some(125), RunOutcome::Refused));
    let error = facts.error.ok_or("no error")?;
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert_eq!(ended.stderr.trim_end(), format!("dsh-run: {}", error.message));
    assert_eq!((facts.profile.as_deref(), facts.exit), (Some("mine"), None));
    // Refused or not, it never says more than the profile allows.
    assert_eq!(facts.network, Network::Off);
    Ok(())
}
