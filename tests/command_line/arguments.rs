//! Arguments, paths and the rest of what a command is handed arrive unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    names_that_are_not_utf8,
    many_arguments,
    one_long_argument,
    arguments_that_look_like_options,
    the_umask_travels,
    a_current_directory_below_a_link,
    a_relative_workdir,
    help_and_version_are_no_errors,
];

fn odd() -> OsString {
    OsString::from_vec(b"odd \xff\xfe\n name".to_vec())
}

fn names_that_are_not_utf8(caller: &Caller) -> Outcome {
    let place = caller.make_dir(odd())?;
    std::fs::create_dir(place.join(odd()))?;
    caller.persona().own(&place.join(odd()))?;
    for (workdir, expected) in [(place.clone(), &place), (place.join(odd()), &place.join(odd()))] {
        let mut command = caller.dsh_run(["--mode", "workspace-write", "--workspace"]);
        command.arg(&place).arg("--workdir").arg(&workdir);
        command
            .args(["--", "sh", "-c", "printf %s \"$1\" >\"$1\"; pwd -P >where", "sh"])
            .arg(odd());
        if workdir == place {
            command.env_remove("PWD");
            std::fs::remove_dir(place.join(odd()))?;
        }
        let ended = finish(&mut command)?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
        let mut wanted = expected.as_os_str().as_bytes().to_vec();
        wanted.push(b'\n');
        assert_eq!(std::fs::read(expected.join("where"))?, wanted);
        assert_eq!(std::fs::read(expected.join(odd()))?, odd().as_bytes());
        if workdir == place {
            std::fs::remove_file(place.join(odd()))?;
            std::fs::create_dir(place.join(odd()))?;
            caller.persona().own(&place.join(odd()))?;
        }
    }
    let mut command = caller.dsh_run(["--", "sh", "-c", "pwd -P | od -An -c"]);
    let ended = finish(command.current_dir(&place))?;
    assert!(ended.stdout.contains("377"), "{}", ended.stdout);
    Ok(())
}

fn many_arguments(caller: &Caller) -> Outcome {
    let argument = "a".repeat(100);
    for mode in ["read-only", "danger-full-access"] {
        let script = "echo $# ${#1}; shift 1999; echo ${#1}";
        let mut command = caller.dsh_run(["--mode", mode, "--", "bash", "-c", script, "bash"]);
        command.args(std::iter::repeat_n(&argument, 2000));
        assert_eq!(finish(&mut command)?.stdout, "2000 100\n100\n", "{mode}");
    }
    Ok(())
}

fn one_long_argument(caller: &Caller) -> Outcome {
    let argument = "x".repeat(120_000);
    for mode in ["read-only", "danger-full-access"] {
        let mut command = caller.dsh_run(["--mode", mode, "--", "bash", "-c", "echo ${#0}"]);
        assert_eq!(finish(command.arg(&argument))?.stdout, "120000\n", "{mode}");
    }
    let mut command =
        caller.dsh_run([OsStr::new("-c"), OsStr::new(&format!("echo ${{#1}}; : {argument}"))]);
    assert_eq!(finish(command.args(["--", "four"]))?.stdout, "4\n");
    Ok(())
}

fn arguments_that_look_like_options(caller: &Caller) -> Outcome {
    let words = ["--mode", "danger-full-access", "--", "-c", "", "--help", "doctor", "*", "a  b"];
    let mut command = caller.dsh_run(["--", "printf", "%s\n", "--mode"]);
    let expected = words.map(|word| format!("{word}\n")).concat();
    assert_eq!(finish(command.args(&words[1..]))?.stdout, expected);
    Ok(())
}

fn the_umask_travels(caller: &Caller) -> Outcome {
    for mask in ["0000", "0027", "0077"] {
        for mode in ["read-only", "workspace-write", "danger-full-access"] {
            let mut command = caller.command("sh");
            command.args(["-c", "umask $1; exec \"$0\" --mode $2 -- sh -c umask"]);
            let ended = finish(command.arg(caller.program()).args([mask, mode]))?;
            assert_eq!(ended.stdout.trim_end(), mask, "{mode}");
        }
    }
    Ok(())
}

fn a_current_directory_below_a_link(caller: &Caller) -> Outcome {
    let real = caller.make_dir("workspace/real")?;
    symlink("workspace", caller.path("link"))?;
    let linked = caller.path("link/real");
    let mut command = caller.dsh_run(["--mode", "workspace-write", "--", "sh", "-c"]);
    command.arg("pwd -L; pwd -P; echo x >new").current_dir(&linked).env("PWD", &linked);
    let ended = finish(&mut command)?;
    // The shell keeps the name that its caller had for the directory, as it does outside.
    let expected = format!("{}\n{}\n", linked.display(), real.canonicalize()?.display());
    assert_eq!((ended.stdout, ended.stderr), (expected, String::new()));
    assert_eq!(std::fs::read_to_string(real.join("new"))?, "x\n");
    Ok(())
}

fn a_relative_workdir(caller: &Caller) -> Outcome {
    let below = caller.make_dir("workspace/below")?;
    let ended = finish(&mut caller.dsh_run(["--workdir", "below", "--", "pwd", "-P"]))?;
    assert_eq!(ended.stdout.trim_end(), below.canonicalize()?.to_string_lossy());
    let ended = finish(&mut caller.dsh_run(["--workdir", "/", "--", "pwd", "-P"]))?;
    assert_eq!(ended.stdout, "/\n");
    Ok(())
}

fn help_and_version_are_no_errors(caller: &Caller) -> Outcome {
    for (option, says) in [("--help", "dsh-run [OPTIONS] -- CMD"), ("--version", "dsh-run ")] {
        let ended = finish(&mut caller.dsh_run([option]))?;
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{option}");
        assert!(ended.stdout.contains(says), "{}", ended.stdout);
    }
    Ok(())
}
