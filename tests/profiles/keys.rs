//! Every key of a profile, seen to take effect in a run.

use std::fs;

use dsh_facts::{Network, SandboxMode};

use crate::calling::{facts_of, own_profile, resolved, run, script};
use crate::support::caller::{Caller, finish};
use crate::support::kernel;
use crate::support::refused::{MARK, assert_refused};
use crate::support::suite::{Outcome, skip, tests};

tests![
    network,
    writable,
    a_writable_root_that_is_missing,
    an_environment_that_passes_drops_and_sets,
    an_environment_that_is_cleared,
    rules,
    pids,
    scratch_size,
    hidden_and_protected,
    all_of_a_chain_together,
    a_home_directory_that_is_not_known,
];

/// Uses a profile of this text.
fn profile(caller: &Caller, text: &str) -> std::io::Result<[&'static str; 2]> {
    own_profile(caller, "mine", text)?;
    Ok(["--profile", "mine"])
}

fn network(caller: &Caller) -> Outcome {
    let connect = "exec 3<>/dev/tcp/127.0.0.1/9";
    for (value, network, says) in [
        ("off", Network::Off, "Network is unreachable"),
        ("loopback", Network::Loopback, "Connection refused"),
        ("host", Network::Host, ""),
    ] {
        for base in ["read-only", "workspace-write"] {
            let text = format!("extends = \"{base}\"\nnetwork = \"{value}\"\n");
            let options = profile(caller, &text)?;
            let (ended, facts) = run(caller, &[&options[..], &["-c", connect]].concat())?;
            assert_eq!(facts.network, network);
            assert!(ended.stderr.contains(says), "{value}: {}", ended.stderr);
            assert_eq!(facts.profile.as_deref(), Some("mine"));
        }
    }
    Ok(())
}

fn writable(caller: &Caller) -> Outcome {
    for name in ["home/cache", "beside", "far"] {
        caller.make_dir(name)?;
    }
    let far = caller.path("far");
    let text = format!(
        "extends = 'workspace-write'\nwritable = ['~/cache', '../beside', '{}']\n",
        far.display()
    );
    let options = profile(caller, &text)?;
    let write = "echo 1 >~/cache/x; echo 2 >../beside/x; echo 3 >../far/x; echo 4 >x";
    let (_, facts) = script(caller, &options, write)?;
    for (name, text) in
        [("home/cache/x", "1\n"), ("beside/x", "2\n"), ("far/x", "3\n"), ("workspace/x", "4\n")]
    {
        assert_eq!(fs::read_to_string(caller.path(name))?, text);
    }
    let roots = ["beside", "far", "home/cache", "workspace"].map(|name| resolved(caller, name));
    assert_eq!(facts.writable, roots);
    let (ended, _) = run(caller, &[&options[..], &["-c", "echo >~/x"]].concat())?;
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
    // A narrower mode has none of them.
    let narrower = [&options[..], &["--mode", "read-only", "-c", "echo 5 >~/cache/x"]].concat();
    let (ended, facts) = run(caller, &narrower)?;
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
    assert_eq!((facts.mode, facts.writable), (SandboxMode::ReadOnly, vec![]));
    Ok(())
}

fn a_writable_root_that_is_missing(caller: &Caller) -> Outcome {
    let text = "extends = 'workspace-write'\nwritable = ['~/nothing', '../none/deep']\n";
    let options = profile(caller, text)?;
    let (_, facts) = script(caller, &options, "true")?;
    let missing = ["home/nothing", "workspace/../none/deep"].map(|name| caller.path(name));
    assert_eq!(facts.missing, missing.map(|path| path.to_string_lossy().into_owned()));
    assert_eq!(facts.writable, [resolved(caller, "workspace")]);
    assert!(!caller.path("home/nothing").exists() && !caller.path("none").exists());
    // What is there and is no directory is a mistake.
    caller.make_file("home/nothing", "")?;
    let (ended, _) = run(caller, &[&options[..], &["--", "true"]].concat())?;
    assert_eq!(ended.status.code(), Some(125));
    assert!(ended.stderr.contains("ENOTDIR"), "{}", ended.stderr);
    Ok(())
}

fn an_environment_that_passes_drops_and_sets(caller: &Caller) -> Outcome {
    let text = "extends = 'read-only'\n[environment]\npass = ['API_TOKEN', 'NOT_SET']\n\
                drop = ['PLAIN']\nset = { CI = '1', GREETING = 'a \"b\" $c', LC_ALL = 'POSIX' }\n";
    let options = profile(caller, text)?;
    let mut command = caller.dsh_run(options);
    command.args(["--env", "CI=2", "--", "env"]);
    command.env("API_TOKEN", "t").env("OTHER_TOKEN", "o").env("PLAIN", "p").env("KEPT", "k");
    let ended = finish(&mut command)?;
    let has = |line: &str| ended.stdout.lines().any(|seen| seen == line);
    for line in ["API_TOKEN=t", "KEPT=k", "GREETING=a \"b\" $c", "LC_ALL=POSIX"] {
        assert!(has(line), "no {line}: {}", ended.stdout);
    }
    // The command line is the narrower level: what it sets comes last.
    assert!(has("CI=2") && !has("CI=1"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("PLAIN") && !ended.stdout.contains("OTHER_TOKEN"));
    Ok(())
}

fn an_environment_that_is_cleared(caller: &Caller) -> Outcome {
    let text = "extends = 'workspace-write'\n[environment]\nclear = true\npass = ['LANG']\n\
                set = { PATH = '/usr/bin:/bin' }\n";
    let options = profile(caller, text)?;
    let mut command = caller.dsh_run(options);
    command.args(["--", "env"]).env("LANG", "C").env("PLAIN", "p");
    let ended = finish(&mut command)?;
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["LANG=C", "PATH=/usr/bin:/bin", "TMPDIR=/tmp"], "{}", ended.stderr);
    Ok(())
}

fn rules(caller: &Caller) -> Outcome {
    let text = "extends = 'workspace-write'\n\
                [[rule]]\nwhy = 'no new directories'\ncalls = ['mkdir', 'mkdirat']\nerrno = 'EPERM'\n\
                [[rule]]\nwhy = 'no pipes with a name'\ncalls = ['mknodat']\nerrno = 'ENOSYS'\n\
                when = [[{ arg = 2, mask = 0o170000, is = 0o010000 }]]\n";
    let options = profile(caller, text)?;
    let probe = caller.program().with_file_name("dsh-probe");
    for (words, errno) in [
        (&["mkdir", "made", "0755"][..], "\"EPERM\""),
        (&["mknodat", "pipe", "fifo", "0644"], "\"ENOSYS\""),
        (&["mknodat", "file", "regular", "0644"], "null"),
    ] {
        let mut command = caller.dsh_run(options);
        let ended = finish(command.arg("--").arg(&probe).args(words))?;
        let expected = format!("\"errno\":{errno}");
        assert!(ended.stdout.contains(&expected), "{words:?}: {} {}", ended.stdout, ended.stderr);
    }
    let names = fs::read_dir(caller.workspace())?.map(|entry| entry.map(|entry| entry.file_name()));
    assert_eq!(names.collect::<Result<Vec<_>, _>>()?, ["file"]);
    Ok(())
}

fn pids(caller: &Caller) -> Outcome {
    let options = profile(caller, "extends = 'read-only'\npids = 500\n")?;
    // Two of them are the sandbox's own.
    let (ask, expected) = if !caller.persona().is_root() {
        ("ulimit -u", "502\n")
    } else if kernel::at_least(6, 14) {
        ("cat /proc/sys/kernel/pid_max", "500\n")
    } else {
        return skip("limits bind root only from Linux 6.14 on");
    };
    assert_eq!(script(caller, &options, ask)?.0, expected);
    let narrower = [&options[..], &["--pids", "400"]].concat();
    assert_eq!(script(caller, &narrower, ask)?.0, expected.replacen('5', "4", 1));
    Ok(())
}

fn scratch_size(caller: &Caller) -> Outcome {
    let options = profile(caller, "extends = 'read-only'\nscratch_size = '3M'\n")?;
    let ask = "df -B1 --output=size /tmp | tail -1";
    assert_eq!(script(caller, &options, ask)?.0.trim(), "3145728");
    let narrower = [&options[..], &["--scratch-size", "1M"]].concat();
    assert_eq!(script(caller, &narrower, ask)?.0.trim(), "1048576");
    Ok(())
}

fn hidden_and_protected(caller: &Caller) -> Outcome {
    caller.make_file("home/secret", "secret\n")?;
    caller.make_file("workspace/fixed", "fixed\n")?;
    caller.make_file("home/unwritable", "")?;
    let text = "extends = 'workspace-write'\nhidden = ['~/secret', 'none']\n\
                protected = ['fixed', '~/unwritable', 'absent/deep']\n";
    let options = profile(caller, text)?;
    let tries = "cat ~/secret; echo x >fixed; true";
    let (ended, facts) = run(caller, &[&options[..], &["-c", tries]].concat())?;
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("fixed: Read-only file system"), "{}", ended.stderr);
    assert_eq!(facts.hidden, [resolved(caller, "home/secret")]);
    let protected = ["workspace/fixed", "home/unwritable"].map(|name| resolved(caller, name));
    assert_eq!(facts.protected, protected);
    let workspace = resolved(caller, "workspace");
    assert_eq!(facts.missing, ["none", "absent/deep"].map(|name| format!("{workspace}/{name}")));
    Ok(())
}

fn all_of_a_chain_together(caller: &Caller) -> Outcome {
    caller.make_file("home/one", "1")?;
    caller.make_file("home/two", "2")?;
    own_profile(
        caller,
        "base",
        "extends = 'workspace-write'\nhidden = ['~/one']\nnetwork = 'off'\nscratch_size = '4M'\n\
         environment.set = { A = 'base', B = 'base' }\nenvironment.drop = ['C']\n",
    )?;
    let text = "extends = 'base'\nhidden = ['~/two']\nscratch_size = '2M'\n\
                environment.set = { A = 'top' }\n";
    let options = profile(caller, text)?;
    let hide = caller.make_file("home/three", "3")?;
    let mut command = caller.dsh_run(["--facts", "../facts.json"]);
    command.args(options).arg("--hide").arg(&hide).env("C", "c");
    command.args([
        "-c",
        "df -B1 --output=size /tmp | tail -1; echo $A $B $C; cat ~/one ~/two ~/three",
    ]);
    let (ended, facts) = facts_of(caller, &mut command)?;
    let lines: Vec<_> = ended.stdout.lines().map(str::trim).collect();
    assert_eq!(lines, ["2097152", "top base"], "{}", ended.stderr);
    assert_eq!(facts.network, Network::Off);
    let hidden = ["home/one", "home/two", "home/three"].map(|name| resolved(caller, name));
    assert_eq!(facts.hidden, hidden);
    Ok(())
}

fn a_home_directory_that_is_not_known(caller: &Caller) -> Outcome {
    let file = caller.make_file("p.toml", "extends = 'read-only'\nhidden = ['~/.ssh']\n")?;
    for home in [None, Some(""), Some("relative/home")] {
        let mut command = caller.dsh_run(["--profile"]);
        command.arg(&file).env_remove("HOME").envs(home.map(|home| ("HOME", home)));
        command.args(MARK);
        let says = ["~/.ssh", "HOME is not set to an absolute path", "write the path out"];
        assert_refused(caller, &mut command, &says)?;
    }
    Ok(())
}
