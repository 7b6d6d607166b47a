//! Files that are no profiles, or unusual ones: none hangs, none is read without bound.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::calling::script;
use crate::support::caller::Caller;
use crate::support::refused::{assert_refused, marked};
use crate::support::suite::{Outcome, tests};

tests![
    what_is_no_file,
    a_pipe_that_nobody_writes,
    what_cannot_be_read,
    what_is_not_text,
    the_largest_that_is_read,
    a_long_chain,
    names_with_control_characters,
];

fn refused(caller: &Caller, profile: &str, says: &[&str]) -> Outcome {
    assert_refused(caller, &mut marked(caller, ["--profile", profile]), says)?;
    assert_refused(caller, &mut caller.dsh_run(["profiles", "show", profile]), says)
}

fn what_is_no_file(caller: &Caller) -> Outcome {
    let _socket = UnixListener::bind(caller.path("socket"))?;
    for place in ["..", "../home"] {
        let path = format!("{place}/");
        refused(caller, &path, &["not a regular file", "name a file that can be read"])?;
    }
    for path in ["/dev/zero", "/dev/null", "/dev/tty", "../socket"] {
        refused(caller, path, &[path, "name a file that can be read"])?;
    }
    Ok(())
}

fn a_pipe_that_nobody_writes(caller: &Caller) -> Outcome {
    mkfifo(&caller.path("pipe"), Mode::from_bits_truncate(0o666))?;
    caller.persona().own(&caller.path("pipe"))?;
    refused(caller, "../pipe", &["../pipe", "name a file that can be read"])?;
    // Nor one in which something stands: it could be read but once.
    let mut pipe = File::options().read(true).write(true).open(caller.path("pipe"))?;
    pipe.write_all(b"extends = 'read-only'\n")?;
    refused(caller, "../pipe", &["../pipe", "name a file that can be read"])?;
    caller.make_file("on-top.toml", "extends = './pipe'\n")?;
    refused(caller, "../on-top.toml", &["./pipe", "name a file that can be read"])
}

fn what_cannot_be_read(caller: &Caller) -> Outcome {
    let closed = caller.make_file("closed.toml", "extends = 'read-only'\n")?;
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o000))?;
    if !caller.persona().is_root() {
        refused(caller, "../closed.toml", &["../closed.toml", "EACCES"])?;
    }
    symlink("nothing.toml", caller.path("dangling.toml"))?;
    symlink("loop.toml", caller.path("loop.toml"))?;
    refused(caller, "../dangling.toml", &["../dangling.toml", "ENOENT"])?;
    refused(caller, "../loop.toml", &["../loop.toml", "ELOOP"])?;
    refused(caller, "../closed.toml/x", &["ENOTDIR"])?;
    refused(caller, &format!("../{}.toml", "x".repeat(300)), &["ENAMETOOLONG"])
}

fn what_is_not_text(caller: &Caller) -> Outcome {
    for bytes in [&b"extends = 'read-only' # \xff\n"[..], b"\xfe\xff\0e\0x", b"\xed\xa0\x80"] {
        fs::write(caller.path("bytes.toml"), bytes)?;
        refused(caller, "../bytes.toml", &["../bytes.toml", "not UTF-8"])?;
    }
    fs::write(caller.path("bytes.toml"), b"extends = 'read-only'\n\0\n")?;
    refused(caller, "../bytes.toml", &["bytes.toml:2:"])
}

/// A mebibyte; a larger one is refused without being read.
fn the_largest_that_is_read(caller: &Caller) -> Outcome {
    let fill = |length: usize| {
        let text = b"extends = 'read-only'\n#";
        [&text[..], &vec![b'x'; length - text.len()]].concat()
    };
    fs::write(caller.path("big.toml"), fill(1 << 20))?;
    script(caller, &["--profile", "../big.toml"], "true")?;
    fs::write(caller.path("big.toml"), fill((1 << 20) + 1))?;
    refused(caller, "../big.toml", &["../big.toml", "larger than 1 MiB"])?;
    // One that holds no blocks, and more than the memory.
    File::create(caller.path("huge.toml"))?.set_len(1 << 40)?;
    refused(caller, "../huge.toml", &["../huge.toml", "larger than 1 MiB"])?;
    // A file of the kernel says that it is empty, and is not.
    refused(caller, "/proc/self/maps", &["/proc/self/maps:1:"])
}

fn a_long_chain(caller: &Caller) -> Outcome {
    const LENGTH: u32 = 1000;
    let name = |number| caller.path(format!("{number}.toml"));
    for number in 1..LENGTH {
        fs::write(name(number), format!("extends = './{}.toml'\n", number - 1))?;
    }
    fs::write(name(0), "extends = 'workspace-write'\nhidden = ['/etc/passwd']\n")?;
    let (_, facts) = script(caller, &["--profile", "../999.toml"], "true")?;
    assert_eq!(facts.hidden.len(), 1);
    fs::write(name(0), "extends = './999.toml'\n")?;
    refused(caller, "../999.toml", &["./0.toml:1:11: ", "is a circle"])
}

/// [`assert_refused`] counts the control characters of the line.
fn names_with_control_characters(caller: &Caller) -> Outcome {
    let odd = "../\u{1b}[31m\r\u{9b}1m\n.toml";
    let file = odd.trim_start_matches("../");
    refused(caller, odd, &["ENOENT", "\u{fffd}[31m\u{fffd}\u{fffd}1m\u{fffd}.toml"])?;
    caller.make_file(file, "netwrok = 1\n")?;
    refused(caller, odd, &["\u{fffd}[31m\u{fffd}\u{fffd}1m\u{fffd}.toml:1:1: "])?;
    for text in [
        "extends = \"\\u001B[31m\\u009B\\n\"\n",
        "extends = \"./\\u001B[31m\\u009B\\n\"\n",
        "extends = 'read-only'\n\"\\u001B[31m\\n\" = 1\n",
        "extends = 'read-only'\nhidden = [\"~\\u001B[31m\\n\"]\n",
        "extends = 'read-only'\nwritable = [\"\\u001B[31m\\n\"]\n",
        "extends = 'read-only'\nnetwork = \"\\u001B[31m\\n\"\n",
        "extends = 'read-only'\n[[rule]]\ncalls = [\"\\u001B[31m\\n\"]\n",
    ] {
        fs::write(caller.path("p.toml"), text)?;
        refused(caller, "../p.toml", &["\u{fffd}[31m"])?;
    }
    Ok(())
}
