//! The command's environment.

use std::process::Command;

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    credentials_stay_outside,
    a_named_credential_is_passed,
    variables_are_set_and_cleared,
    code_in_variables_is_not_run,
    temporary_files_go_to_the_scratch,
];

const CONFINED: [&str; 2] = ["read-only", "workspace-write"];

/// The variables that the command sees, one a line.
fn seen(command: &mut Command) -> std::io::Result<Vec<String>> {
    let ended = finish(command.args(["--", "env"]))?;
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{command:?}");
    Ok(ended.stdout.lines().map(str::to_owned).collect())
}

fn with_secrets(caller: &Caller, arguments: &[&str]) -> Command {
    let mut command = caller.dsh_run(arguments);
    command.env("API_TOKEN", "t").env("aws_secret_access_key", "s").env("SSH_AUTH_SOCK", "/s");
    command.env("PLAIN", "p q").env("KEYBOARD_LAYOUT", "k");
    command
}

fn names(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.split('=').next()).collect()
}

fn credentials_stay_outside(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let lines = seen(&mut with_secrets(caller, &["--mode", mode]))?;
        for name in ["API_TOKEN", "aws_secret_access_key", "SSH_AUTH_SOCK"] {
            assert!(!names(&lines).contains(&name), "{mode} {lines:?}");
        }
        for line in ["PLAIN=p q", "KEYBOARD_LAYOUT=k", "LC_ALL=C"] {
            assert!(lines.iter().any(|seen| seen == line), "{mode} {lines:?}");
        }
    }
    let lines = seen(&mut with_secrets(caller, &["--mode", "danger-full-access"]))?;
    assert!(lines.contains(&"API_TOKEN=t".to_owned()), "{lines:?}");
    Ok(())
}

fn a_named_credential_is_passed(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let options = ["--mode", mode, "--pass-env", "API_TOKEN", "--pass-env", "NOT_SET"];
        let lines = seen(&mut with_secrets(caller, &options))?;
        assert!(lines.contains(&"API_TOKEN=t".to_owned()), "{lines:?}");
        assert!(!names(&lines).contains(&"SSH_AUTH_SOCK"), "{lines:?}");
        assert!(!names(&lines).contains(&"NOT_SET"), "{lines:?}");
    }
    Ok(())
}

fn variables_are_set_and_cleared(caller: &Caller) -> Outcome {
    for mode in CONFINED {
        let options =
            ["--mode", mode, "--env", "PLAIN=other=x", "--env", "MY_TOKEN=1", "--env", "E="];
        let lines = seen(&mut with_secrets(caller, &options))?;
        for line in ["PLAIN=other=x", "MY_TOKEN=1", "E="] {
            assert_eq!(lines.iter().filter(|seen| *seen == line).count(), 1, "{lines:?}");
        }
        let options =
            ["--mode", mode, "--clear-env", "--pass-env", "PLAIN", "--env", "PATH=/usr/bin:/bin"];
        let mut lines = seen(&mut with_secrets(caller, &options))?;
        lines.sort();
        assert_eq!(lines, ["PATH=/usr/bin:/bin", "PLAIN=p q", "TMPDIR=/tmp"], "{mode}");
    }
    let options = ["--mode", "danger-full-access", "--clear-env", "--env", "PATH=/usr/bin:/bin"];
    assert_eq!(seen(&mut with_secrets(caller, &options))?, ["PATH=/usr/bin:/bin"]);
    Ok(())
}

fn code_in_variables_is_not_run(caller: &Caller) -> Outcome {
    let startup = caller.make_file("startup", "echo planted\n")?;
    for mode in CONFINED {
        let mut command = caller.dsh_run(["--mode", mode, "-c", "ls; echo end"]);
        command.env("BASH_ENV", &startup).env("ENV", &startup);
        command.env("BASH_FUNC_ls%%", "() { echo planted; }");
        assert_eq!(finish(&mut command)?.stdout, "end\n", "{mode}");
    }
    Ok(())
}

fn temporary_files_go_to_the_scratch(caller: &Caller) -> Outcome {
    let own = caller.make_dir("workspace/tmp")?;
    let elsewhere = caller.path("home");
    for mode in CONFINED {
        let script = "echo $TMPDIR; f=$(mktemp) && echo x >\"$f\" && cat \"$f\"";
        for (set, expected) in [
            (None, "/tmp".to_owned()),
            (Some(&elsewhere), "/tmp".to_owned()),
            (
                Some(&own),
                match mode {
                    "workspace-write" => own.display().to_string(),
                    _ => "/tmp".to_owned(),
                },
            ),
        ] {
            let mut command = caller.dsh_run(["--mode", mode, "-c", script]);
            command.envs(set.map(|set| ("TMPDIR", set)));
            let ended = finish(&mut command)?;
            let expected = format!("{expected}\nx\n");
            assert_eq!((ended.stdout, ended.stderr), (expected, String::new()), "{mode} {set:?}");
        }
    }
    Ok(())
}
