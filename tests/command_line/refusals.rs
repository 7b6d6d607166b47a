//! Arguments that cannot be carried out: exit 125, one line that names what and what to do, and
//! nothing ran.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::process::{Command, Stdio};

use nix::libc;

use crate::support::caller::{Caller, finish};
use crate::support::refused::{MARK, assert_refused, marked};
use crate::support::suite::{Outcome, skip, tests};

tests![
    an_unknown_mode,
    a_command_without_the_dashes,
    an_empty_command,
    malformed_values,
    options_that_exclude_each_other,
    a_facts_file_that_cannot_be_written,
    a_facts_file_on_a_read_only_file_system,
    a_facts_file_or_script_below_a_writable_root,
    a_script_that_cannot_be_read,
    a_facts_descriptor_that_cannot_be_written,
    descriptors_that_pierce_the_layers,
    what_the_widest_rung_cannot_keep,
];

fn an_unknown_mode(caller: &Caller) -> Outcome {
    for mode in ["write-everything", "", "Read-Only"] {
        let says = ["--mode", "read-only, workspace-write or danger-full-access"];
        assert_refused(caller, &mut marked(caller, ["--mode", mode]), &says)?;
    }
    Ok(())
}

fn a_command_without_the_dashes(caller: &Caller) -> Outcome {
    let says = ["'touch'", "dsh-run -- touch"];
    assert_refused(caller, &mut caller.dsh_run(["touch", "mark"]), &says)?;
    let arguments = ["--mode", "workspace-write", "touch", "mark"];
    assert_refused(caller, &mut caller.dsh_run(arguments), &says)?;
    let arguments = ["--mode", "workspace-write", "touch", "--", "mark"];
    assert_refused(caller, &mut caller.dsh_run(arguments), &says)?;
    let says = ["'ls'", "dsh-run -- ls"];
    assert_refused(caller, &mut caller.dsh_run(["ls", "-la"]), &says)
}

fn an_empty_command(caller: &Caller) -> Outcome {
    for arguments in [&[][..], &["--"], &["--", ""], &["--mode", "danger-full-access"]] {
        assert_refused(caller, &mut caller.dsh_run(arguments), &["empty command", "program"])?;
    }
    Ok(())
}

fn malformed_values(caller: &Caller) -> Outcome {
    let duration = "a number with ms, s, m or h";
    let size = "K, M, G or T";
    for (option, value, says) in [
        ("--timeout", "5", duration),
        ("--timeout", "-1s", "--timeout"),
        ("--timeout", "1e3s", duration),
        ("--timeout", "0s", "more than 0"),
        ("--timeout", "99999999999999999999h", "too long"),
        ("--timeout", "", duration),
        ("--kill-after", "3", duration),
        ("--scratch-size", "1.5G", size),
        ("--scratch-size", "0", "more than 0"),
        ("--scratch-size", "99999999999T", size),
        ("--pids", "0", "1..=4194304"),
        ("--pids", "many", "invalid digit"),
        ("--pids", "4194305", "1..=4194304"),
        ("--env", "NAME", "NAME=VALUE"),
        ("--env", "=value", "NAME=VALUE"),
        ("--network", "lan", "off, loopback or host"),
        ("--require", "some", "full, partial"),
        ("--facts-fd", "2", "2"),
        ("--facts-fd", "three", "three"),
    ] {
        let argument = format!("{option}={value}");
        assert_refused(caller, &mut marked(caller, [argument]), &[option, says])?;
    }
    // An option whose value is missing.
    assert_refused(caller, &mut caller.dsh_run(["--timeout"]), &["--timeout"])
}

fn options_that_exclude_each_other(caller: &Caller) -> Outcome {
    let arguments = ["--facts", "../facts.json", "--facts-fd", "3"];
    assert_refused(caller, &mut marked(caller, arguments), &["--facts", "--facts-fd"])?;
    let arguments = ["-c", ": >mark", "--script", "x"];
    assert_refused(caller, &mut caller.dsh_run(arguments), &["-c", "--script"])
}

fn a_facts_file_that_cannot_be_written(caller: &Caller) -> Outcome {
    let remedy = "name a regular file in a directory that can be written";
    for (file, errno) in [
        ("/var/tmp/dsh-missing-directory/facts.json", "ENOENT"),
        ("../home", "EISDIR"),
        ("../home/", "EISDIR"),
        ("..", "EISDIR"),
        ("/", "EISDIR"),
        ("/etc/passwd/facts.json", "ENOTDIR"),
        ("/dev/null", "/dev/null"),
        ("/dev/full", "/dev/full"),
        ("/proc/self/dsh-facts", "/proc/self/dsh-facts"),
    ] {
        let arguments = ["--mode", "workspace-write", "--facts", file];
        let says = ["facts file", file, errno, remedy];
        assert_refused(caller, &mut marked(caller, arguments), &says)?;
    }
    if !caller.persona().is_root() {
        let says = ["facts file", "/etc/dsh-facts", "EACCES", remedy];
        assert_refused(caller, &mut marked(caller, ["--facts", "/etc/dsh-facts"]), &says)?;
    }
    Ok(())
}

fn a_facts_file_on_a_read_only_file_system(caller: &Caller) -> Outcome {
    caller.make_dir("sealed")?;
    let mut probe = caller.mounting_shell("mount -t tmpfs -o ro none ../sealed");
    if !finish(&mut probe)?.status.success() {
        return skip("cannot mount a file system");
    }
    let script = "mount -t tmpfs -o ro none ../sealed; exec \"$DSH_RUN\" --mode workspace-write \
                  --facts ../sealed/facts.json -- sh -c 'echo ran; : >mark'";
    let says = ["facts file", "../sealed/facts.json", "EROFS", "directory that can be written"];
    assert_refused(caller, &mut caller.mounting_shell(script), &says)
}

fn a_facts_file_or_script_below_a_writable_root(caller: &Caller) -> Outcome {
    caller.make_file("workspace/script.sh", "echo ran; : >mark\n")?;
    caller.make_dir("extra")?;
    std::os::unix::fs::symlink("workspace", caller.path("alias"))?;
    let write = ["--mode", "workspace-write", "--writable", "../extra"];
    for file in ["facts.json", "../extra/facts.json", "../alias/facts.json", "./../extra/f"] {
        let mut command = marked(caller, write.iter().chain(&["--facts", file]));
        assert_refused(caller, &mut command, &["facts file", file, "writable root", "elsewhere"])?;
    }
    for file in ["script.sh", "../alias/script.sh"] {
        let mut command = caller.dsh_run(write.iter().chain(&["--script", file]));
        assert_refused(caller, &mut command, &["script", file, "writable root", "elsewhere"])?;
    }
    Ok(())
}

fn a_script_that_cannot_be_read(caller: &Caller) -> Outcome {
    for (file, errno) in [("../missing.sh", "ENOENT"), ("../home", "EISDIR")] {
        let says = ["script", file, errno, "name a file that can be read"];
        assert_refused(caller, &mut caller.dsh_run(["--script", file]), &says)?;
    }
    Ok(())
}

fn a_facts_descriptor_that_cannot_be_written(caller: &Caller) -> Outcome {
    let says = ["--facts-fd 77", "EBADF", "open descriptor"];
    assert_refused(caller, &mut marked(caller, ["--facts-fd", "77"]), &says)?;
    let mut command = caller.command("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 7</etc/passwd"]).arg(caller.program());
    command.args(["--facts-fd", "7"]).args(MARK);
    assert_refused(caller, &mut command, &["--facts-fd 7", "EBADF"])
}

/// Opens one descriptor more of a kind.
type Open = Box<dyn Fn() -> std::io::Result<OwnedFd>>;

fn descriptors_that_pierce_the_layers(caller: &Caller) -> Outcome {
    let path_only = || File::options().read(true).custom_flags(libc::O_PATH).open("/etc/passwd");
    let mut cases: Vec<(&str, Open)> = vec![
        ("a directory", Box::new(|| File::open("/etc").map(OwnedFd::from))),
        ("O_PATH", Box::new(move || path_only().map(OwnedFd::from))),
    ];
    if let Some(device) = block_device() {
        let open = move || File::open(&device).map(OwnedFd::from);
        cases.push(("a block device", Box::new(open)));
    }
    let refused_without_words = |command: &mut Command| -> Outcome {
        // Nobody can be told where standard error itself is refused.
        let status = command.stdout(Stdio::null()).status()?;
        assert_eq!(status.code(), Some(125), "{command:?}");
        Ok(())
    };
    for mode in ["read-only", "workspace-write"] {
        for (kind, open) in &cases {
            let mut command = marked(caller, ["--mode", mode]);
            let says = ["standard input", kind, "/dev/null"];
            assert_refused(caller, command.stdin(Stdio::from(open()?)), &says)?;
            let mut command = marked(caller, ["--mode", mode]);
            let ended = command.stdout(Stdio::from(open()?)).stderr(Stdio::piped()).output()?;
            let stderr = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(125), "{mode} {kind}: {stderr}");
            assert!(stderr.contains("standard output") && stderr.contains(kind), "{stderr}");
            let mut command = marked(caller, ["--mode", mode]);
            refused_without_words(command.stderr(Stdio::from(open()?)))?;
            assert!(!caller.path("workspace/mark").exists(), "it ran: {mode} {kind}");
        }
    }
    // What cannot even be opened for writing never gets as far as a descriptor.
    assert!(File::options().write(true).open("/etc").is_err());
    Ok(())
}

/// A block device that this test may open, if there is one.
fn block_device() -> Option<OsString> {
    let devices = std::fs::read_dir("/dev").ok()?.flatten();
    let blocks = devices.filter(|entry| entry.file_type().is_ok_and(|t| t.is_block_device()));
    let mut paths = blocks.map(|entry| entry.path().into_os_string());
    paths.find(|path| File::open(path).is_ok())
}

fn what_the_widest_rung_cannot_keep(caller: &Caller) -> Outcome {
    for option in [
        &["--network", "off"][..],
        &["--network", "loopback"],
        &["--pids", "100"],
        &["--scratch-size", "1M"],
        &["--require", "full"],
    ] {
        let arguments = ["--mode", "danger-full-access"].iter().chain(option);
        let says = ["danger-full-access", option[0], "drop it or use a narrower mode"];
        assert_refused(caller, &mut marked(caller, arguments), &says)?;
    }
    Ok(())
}
