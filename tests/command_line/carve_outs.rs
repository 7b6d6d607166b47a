//! Ways around hidden and protected paths, and around the names of writable roots, that an attacker
//! once found, each kept closed or told.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use dsh_facts::Facts;

use crate::support::caller::{Caller, finish};
use crate::support::running::Running;
use crate::support::suite::{Outcome, tests};

tests![
    the_name_of_a_root_within_another_one,
    a_hidden_file_that_the_host_replaces,
    a_protected_name_that_does_not_exist,
    a_mount_below_a_hidden_directory_by_its_other_name,
    a_protected_directory_that_holds_the_workspace,
    a_place_of_which_the_sandbox_has_its_own,
    a_root_that_holds_the_callers_profiles,
    a_hidden_path_that_is_not_there_is_told,
    a_facts_file_that_is_a_link_to_a_descriptor,
    a_profile_that_cannot_be_read_still_leaves_facts,
];

/// The command puts a link in its place; the next run does not make writable what it leads to.
fn the_name_of_a_root_within_another_one(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/app")?;
    caller.make_dir("precious")?;
    let options = ["--mode", "workspace-write", "--workspace", "app", "--writable", ".", "-c"];
    finish(caller.dsh_run(options).arg("mv app old; ln -s ../precious app"))?;
    let ended = finish(caller.dsh_run(options).arg("touch app/x"))?;
    assert_eq!(ended.status.code(), Some(125), "{}", ended.stderr);
    assert!(ended.stderr.contains("is reached through the writable root"), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(caller.path("precious"))?.count(), 0);
    Ok(())
}

/// The kernel takes a mount away when somebody outside renames over what is below it. That cannot be
/// kept from happening, so it is a gap.
fn a_hidden_file_that_the_host_replaces(caller: &Caller) -> Outcome {
    let secret = caller.make_file("home/secret", "old")?;
    let facts = caller.path("facts");
    let mut command = caller.dsh_run(["--hide"]);
    command.arg(&secret).arg("--facts").arg(&facts).args(["-c", "echo ready >&2; read line"]);
    let mut running = Running::start(
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()),
    )?;
    let input = running.stdin();
    assert!(running.wait_for_stderr("ready")?);
    std::fs::rename(caller.make_file("home/new", "new")?, &secret)?;
    drop(input);
    running.finish()?;
    let gaps = gaps(&facts)?;
    assert!(gaps.iter().any(|(effect, _)| effect == "uncovered"), "{gaps:?}");
    Ok(())
}

/// Nothing is made on the host for it, so the command can create it: a gap that names it.
fn a_protected_name_that_does_not_exist(caller: &Caller) -> Outcome {
    caller.make_dir("workspace/.git")?;
    caller.make_file("workspace/.git/config", "")?;
    let facts = caller.path("facts");
    let mut command = caller.dsh_run(["--profile", "protect-vcs", "--facts"]);
    let ended = finish(command.arg(&facts).args(["-c", "echo x >.git/config"]))?;
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
    let gaps = gaps(&facts)?;
    let reason = gaps.iter().find(|(effect, _)| effect == "protected").map(|(_, reason)| reason);
    assert!(reason.is_some_and(|reason| reason.contains(".git/commondir")), "{gaps:?}");
    Ok(())
}

/// The same file system, mounted elsewhere, would show what is hidden.
fn a_mount_below_a_hidden_directory_by_its_other_name(caller: &Caller) -> Outcome {
    let script = "mkdir -p ../out/mounted ../alias; mount -t tmpfs none ../out/mounted; \
                  echo subsecret >../out/mounted/s; mount --bind ../out/mounted ../alias; \
                  \"$DSH_RUN\" --hide ../out -c 'cat ../alias/s' || echo refused";
    let ended = finish(&mut caller.mounting_shell(script))?;
    assert_eq!(ended.stdout, "refused\n", "{}", ended.stderr);
    Ok(())
}

/// The workspace is a mount of its own, which the outer one's being read-only does not reach.
fn a_protected_directory_that_holds_the_workspace(caller: &Caller) -> Outcome {
    let options = ["--mode", "workspace-write", "--protect", "..", "--", "touch", "x"];
    let ended = finish(&mut caller.dsh_run(options))?;
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
    assert!(!caller.path("workspace/x").exists());
    Ok(())
}

fn a_place_of_which_the_sandbox_has_its_own(caller: &Caller) -> Outcome {
    for path in ["/proc/self", "/proc/mounts", "/dev/null"] {
        let ended = finish(&mut caller.dsh_run(["--hide", path, "--", "true"]))?;
        assert_eq!(ended.status.code(), Some(125), "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains("of which the sandbox has its own"), "{}", ended.stderr);
    }
    Ok(())
}

/// A profile written by a command would be the policy of later runs.
fn a_root_that_holds_the_callers_profiles(caller: &Caller) -> Outcome {
    caller.make_dir("home/.config")?;
    for root in ["../home/.config", "../home/.config/dsh/profiles"] {
        std::fs::create_dir_all(caller.workspace().join(root))?;
        let options = ["--mode", "workspace-write", "--workspace", root, "--", "true"];
        let ended = finish(&mut caller.dsh_run(options))?;
        assert_eq!(ended.status.code(), Some(125), "{root}: {}", ended.stderr);
        assert!(ended.stderr.contains("holds your profiles"), "{}", ended.stderr);
    }
    Ok(())
}

/// More often a slip than meant: one line, and the command runs.
fn a_hidden_path_that_is_not_there_is_told(caller: &Caller) -> Outcome {
    let ended = finish(&mut caller.dsh_run(["--hide", "/etc/shadoww", "--", "true"]))?;
    assert_eq!(ended.stderr, "dsh-run: --hide /etc/shadoww: nothing is there\n");
    assert_eq!(ended.status.code(), Some(0));
    for (name, told) in [("./none", true), ("none", true), ("../none", true), ("there", false)] {
        caller.make_file("workspace/there", "")?;
        let ended = finish(&mut caller.dsh_run(["--hide", name, "--", "true"]))?;
        let line = format!("dsh-run: --hide {name}: nothing is there\n");
        assert_eq!(ended.stderr, if told { &*line } else { "" });
    }
    // What only the profile names is in the facts alone, whatever the end of a name on the line.
    caller.make_file("profile.toml", "extends = 'read-only'\nhidden = ['deep/there']\n")?;
    let options = ["--profile", "../profile.toml", "--hide", "there", "--", "true"];
    assert_eq!(finish(&mut caller.dsh_run(options))?.stderr, "");
    let options = ["--quiet", "--hide", "/etc/shadoww", "--", "true"];
    assert_eq!(finish(&mut caller.dsh_run(options))?.stderr, "");
    Ok(())
}

/// As /dev/stdout is: the rename would replace the link (EINVAL).
fn a_facts_file_that_is_a_link_to_a_descriptor(caller: &Caller) -> Outcome {
    let link = caller.path("link");
    symlink("/proc/self/fd/1", &link)?;
    let ended = finish(caller.dsh_run(["--facts"]).arg(&link).args(["--", "true"]))?;
    assert_eq!(ended.status.code(), Some(125), "{}", ended.stderr);
    assert!(ended.stderr.contains("EINVAL"), "{}", ended.stderr);
    assert!(link.symlink_metadata()?.is_symlink());
    Ok(())
}

fn a_profile_that_cannot_be_read_still_leaves_facts(caller: &Caller) -> Outcome {
    let facts = caller.path("facts");
    let mut command = caller.dsh_run(["--profile", "no-such", "--facts"]);
    let ended = finish(command.arg(&facts).args(["--", "true"]))?;
    assert_eq!(ended.status.code(), Some(125), "{}", ended.stderr);
    let facts: Facts = serde_json::from_slice(&std::fs::read(facts)?)?;
    let message = facts.error.map(|error| error.message).unwrap_or_default();
    assert!(message.contains("no profile 'no-such'"), "{message}");
    Ok(())
}

/// Effects and reasons of the gaps in a facts file.
fn gaps(facts: &std::path::Path) -> std::io::Result<Vec<(String, String)>> {
    let facts: Facts = serde_json::from_slice(&std::fs::read(facts)?)?;
    let gaps = facts.enforcement.map(|enforcement| enforcement.gaps).unwrap_or_default();
    Ok(gaps.into_iter().map(|gap| (gap.effect, gap.reason)).collect())
}
