//! Standard input, output and error, whatever they are; and nothing beside them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, tests};

tests![
    closed_ones_are_as_good_as_null,
    others_are_closed_inside,
    every_kind_of_input,
    a_file_is_read_from_where_it_stands,
    a_file_whose_name_is_out_of_reach,
    here_documents,
    three_plain_files,
    appending_to_a_granted_file,
    a_broken_pipe_ends_the_writer,
];

/// Lists its own descriptors without opening one: bash looks at names itself, with stat(2).
const LIST: &str = "for n in {0..1100}; do [ -e /proc/$$/fd/$n ] && seen=\"$seen $n\"; done; \
                    echo \"only$seen\"";

fn closed_ones_are_as_good_as_null(caller: &Caller) -> Outcome {
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        for closed in 0..8 {
            let closing: String = ["<&-", ">&-", "2>&-"]
                .iter()
                .enumerate()
                .filter(|(number, _)| closed & (1 << number) != 0)
                .map(|(_, redirection)| format!(" {redirection}"))
                .collect();
            // The command has no other way to tell than its exit status.
            let mut check = format!("{LIST} >/dev/null; [ \"$seen\" = ' 0 1 2' ] || exit 9; ");
            for number in (0..3).filter(|number| closed & (1 << number) != 0) {
                check += &format!("[ /proc/$$/fd/{number} -ef /dev/null ] || exit 1{number}; ");
            }
            check += "exit 42";
            let mut command = caller.command("sh");
            command.arg("-c").arg(format!("exec \"$0\" --mode \"$1\" -- bash -c \"$2\"{closing}"));
            let ended = finish(command.arg(caller.program()).args([mode, &check]))?;
            let what = format!("{mode} with{closing}: {}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.status.code(), Some(42), "{what}");
            assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{what}");
        }
    }
    Ok(())
}

fn others_are_closed_inside(caller: &Caller) -> Outcome {
    caller.make_file("workspace/open", "")?;
    for mode in ["read-only", "workspace-write"] {
        let mut command = caller.command("bash");
        let script = "exec 3</etc/passwd 7<>open 9>open 63</ 200</etc 1000<open; exec \"$@\"";
        command.args(["-c", script, "bash"]).arg(caller.program());
        let ended = finish(command.args(["--mode", mode, "--", "bash", "-c", LIST]))?;
        assert_eq!(ended.stdout, "only 0 1 2\n", "{mode}: {}", ended.stderr);
    }
    Ok(())
}

/// Makes a descriptor from which the text can be read.
type Make = fn(&Caller, &str) -> std::io::Result<OwnedFd>;

fn every_kind_of_input(caller: &Caller) -> Outcome {
    let text = "input\n";
    let kinds: [(&str, Make); 7] = [
        ("a pipe", |_, text| {
            let (reader, mut writer) = std::io::pipe()?;
            writer.write_all(text.as_bytes())?;
            Ok(reader.into())
        }),
        ("a file", |caller, text| Ok(File::open(caller.make_file("input", text)?)?.into())),
        ("a file in /tmp", |_, text| {
            let mut file = tempfile::NamedTempFile::new_in("/tmp")?;
            file.write_all(text.as_bytes())?;
            // Its name goes away only when the command has ended.
            let (file, path) = file.keep()?;
            let reader = File::open(&path)?;
            drop(file);
            std::fs::remove_file(path)?;
            Ok(reader.into())
        }),
        ("a deleted file", |_, text| {
            let mut file = tempfile::tempfile_in("/var/tmp")?;
            file.write_all(text.as_bytes())?;
            file.rewind()?;
            Ok(file.into())
        }),
        ("a socket", |_, text| {
            let (mut here, there) = UnixStream::pair()?;
            here.write_all(text.as_bytes())?;
            Ok(there.into())
        }),
        ("a memory file", |_, text| {
            let mut file = File::from(memfd_create("input", MFdFlags::MFD_CLOEXEC)?);
            file.write_all(text.as_bytes())?;
            file.rewind()?;
            Ok(file.into())
        }),
        ("nothing", |_, _| Ok(File::open("/dev/null")?.into())),
    ];
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        for (kind, make) in kinds {
            let mut command = caller.dsh_run(["--mode", mode, "--", "cat"]);
            let ended = finish(command.stdin(Stdio::from(make(caller, text)?)))?;
            let expected = if kind == "nothing" { "" } else { text };
            assert_eq!(ended.stdout, expected, "{mode} {kind}: {}", ended.stderr);
            assert_eq!(
                (ended.status.code(), ended.stderr.as_str()),
                (Some(0), ""),
                "{mode} {kind}"
            );
        }
    }
    Ok(())
}

fn a_file_is_read_from_where_it_stands(caller: &Caller) -> Outcome {
    let path = caller.make_file("input", "one\ntwo\nthree\n")?;
    for deleted in [false, true] {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(4))?;
        if deleted {
            std::fs::remove_file(&path)?;
        }
        let ended = finish(caller.dsh_run(["--", "cat"]).stdin(file))?;
        assert_eq!(ended.stdout, "two\nthree\n", "deleted: {deleted}");
    }
    Ok(())
}

fn a_file_whose_name_is_out_of_reach(caller: &Caller) -> Outcome {
    // What a caller opened, its command may read, also where the name leads nowhere for it.
    let closed = tempfile::tempdir_in("/var/tmp")?;
    let path = closed.path().join("input");
    std::fs::write(&path, "input\n")?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
    for mode in ["read-only", "workspace-write"] {
        let mut command = caller.dsh_run(["--mode", mode, "--", "cat"]);
        let ended = finish(command.stdin(File::open(&path)?))?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("input\n", ""), "{mode}");
    }
    let hidden = tempfile::NamedTempFile::new_in("/tmp")?;
    std::fs::write(hidden.path(), "hidden\n")?;
    let ended = finish(caller.dsh_run(["--", "cat"]).stdin(File::open(hidden.path())?))?;
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("hidden\n", ""));
    Ok(())
}

fn here_documents(caller: &Caller) -> Outcome {
    let long = "a line of a here-document\n".repeat(8000);
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        for shell in ["bash", "sh"] {
            for text in ["short\n", &long] {
                // From a file: the long one is larger than one argument may be.
                let script = caller.make_file("here.sh", &format!("cat <<'END'\n{text}END\n"))?;
                let mut command = caller.dsh_run(["--mode", mode, "--", shell]);
                let ended = finish(command.arg(script))?;
                assert_eq!(ended.stderr, "", "{mode} {shell}");
                assert!(ended.stdout == text, "{mode} {shell}: {} bytes", ended.stdout.len());
            }
        }
    }
    Ok(())
}

fn three_plain_files(caller: &Caller) -> Outcome {
    caller.make_file("input", "through\n")?;
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        let (output, error) = (caller.path("output"), caller.path("error"));
        let mut command = caller.dsh_run(["--mode", mode, "--", "sh", "-c"]);
        command.arg("cat; echo e >/dev/stderr; echo o >>/dev/stdout");
        command.stdin(File::open(caller.path("input"))?);
        caller.make_file("output", "")?;
        caller.make_file("error", "")?;
        let append = |path| File::options().append(true).open(path);
        let status = command.stdout(append(&output)?).stderr(append(&error)?).status()?;
        let (output, error) = (std::fs::read_to_string(output)?, std::fs::read_to_string(error)?);
        assert_eq!(status.code(), Some(0), "{mode}: {error}");
        assert_eq!((output.as_str(), error.as_str()), ("through\no\n", "e\n"), "{mode}");
    }
    Ok(())
}

fn appending_to_a_granted_file(caller: &Caller) -> Outcome {
    let path = caller.make_file("log", "before\n")?;
    let file = File::options().append(true).open(&path)?;
    let mut command = caller.dsh_run(["--", "sh", "-c", "echo out; echo err >&2"]);
    let status = command.stdout(file.try_clone()?).stderr(file).status()?;
    assert_eq!(status.code(), Some(0));
    let mut text = String::new();
    File::open(&path)?.read_to_string(&mut text)?;
    assert_eq!(text, "before\nout\nerr\n");
    Ok(())
}

fn a_broken_pipe_ends_the_writer(caller: &Caller) -> Outcome {
    let script = "yes | head -1; echo ${PIPESTATUS[0]}";
    for mode in ["read-only", "workspace-write", "danger-full-access"] {
        let ended = finish(&mut caller.dsh_run(["--mode", mode, "-c", script]))?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("y\n141\n", ""), "{mode}");
        // The pipe between dsh-run and its caller is no different.
        let outer = "\"$0\" --mode \"$1\" -- yes | head -1; echo ${PIPESTATUS[0]}";
        let mut command = caller.command("bash");
        let ended = finish(command.args(["-c", outer]).arg(caller.program()).arg(mode))?;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("y\n141\n", ""), "{mode}");
    }
    Ok(())
}
