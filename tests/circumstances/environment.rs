//! HOME, TMPDIR and environments of other kinds.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::{CONFINED, MODES, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let homes = HOMES.iter().flat_map(|&(name, home)| {
        for_each_user(&format!("environment::home-{name}"), move |caller| any_home(caller, home))
    });
    let places = PLACES.iter().flat_map(|&(name, value, kept)| {
        for_each_user(&format!("environment::tmpdir-{name}"), move |caller| {
            temporary(caller, value, kept)
        })
    });
    homes.chain(places).chain(for_each_user("environment::empty", empty)).collect()
}

const HOMES: &[(&str, Option<&[u8]>)] = &[
    ("unset", None),
    ("empty", Some(b"")),
    ("missing", Some(b"/nonexistent/home")),
    ("a-file", Some(b"/etc/passwd")),
    ("a-device", Some(b"/dev/null")),
    ("relative", Some(b"../home")),
    ("the-root", Some(b"/")),
    ("not-utf8", Some(b"/nonexistent/\xff\n")),
];

/// Whatever HOME is, the command has the same.
fn any_home(caller: &Caller, home: Option<&[u8]>) -> Verdict {
    let home = home.map(|home| OsString::from_vec(home.to_vec()));
    let mut problems = Problems::default();
    for mode in MODES {
        let test = r#"[ "${HOME-unset}" = "$1" ] && ls >/dev/null && echo same"#;
        let mut command = caller.dsh_run(["--mode", mode, "--", "sh", "-c", test, "sh"]);
        command.arg(home.clone().unwrap_or_else(|| "unset".into())).env_remove("HOME");
        let ended = finish(command.envs(home.as_ref().map(|home| ("HOME", home))))?;
        let what = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, what, (Some(0), "same\n", ""));
    }
    problems.verdict(&home)
}

/// Whether workspace-write keeps a TMPDIR. In read-only it is always /tmp.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Always,
    Never,
    /// Whoever may write there keeps it.
    ByRoot,
}

/// The value is a path from the workspace.
const PLACES: &[(&str, &str, Kept)] = &[
    ("missing", "/nonexistent", Kept::Never),
    ("empty", "", Kept::Never),
    ("a-file-outside", "/etc/passwd", Kept::Never),
    ("outside", "../home", Kept::Never),
    ("outside-and-read-only", "../sealed", Kept::Never),
    ("of-the-host", "/var/tmp", Kept::Never),
    ("a-link-that-leads-outside", "out", Kept::Never),
    ("a-file-inside", "file", Kept::Never),
    ("missing-inside", "missing", Kept::Never),
    ("inside", "tmp", Kept::Always),
    ("the-workspace", ".", Kept::Always),
    ("a-link-that-leads-inside", "../in", Kept::Always),
    ("a-further-root", "../extra/tmp", Kept::Always),
    ("inside-and-read-only", "sealed", Kept::ByRoot),
];

/// mktemp works, and leaves what it makes where TMPDIR says.
fn temporary(caller: &Caller, value: &str, kept: Kept) -> Verdict {
    const SCRIPT: &str = r#"f=$(mktemp) && d=$(mktemp -d) && echo x >"$f" && : >"$d/y" &&
        printf '%s\n' "${f%/*}" "${d%/*}""#;
    prepare(caller)?;
    let mut problems = Problems::default();
    for mode in CONFINED {
        let value = if value.is_empty() { PathBuf::new() } else { caller.workspace().join(value) };
        let mut command = caller.dsh_run(["--mode", mode, "-c", SCRIPT]);
        if mode == "workspace-write" {
            command = caller.dsh_run(["--mode", mode, "--writable", "../extra", "-c", SCRIPT]);
        }
        let ended = finish(command.env("TMPDIR", &value))?;
        let keeps = match kept {
            Kept::Always => true,
            Kept::Never => false,
            Kept::ByRoot => caller.persona().is_root(),
        } && mode == "workspace-write";
        let expected = if keeps { value.display().to_string() } else { "/tmp".to_owned() };
        let got = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, got, (Some(0), format!("{expected}\n{expected}\n").as_str(), ""));
    }
    problems.verdict(&value)
}

fn prepare(caller: &Caller) -> io::Result<()> {
    for name in ["sealed", "extra", "extra/tmp", "workspace/tmp", "workspace/sealed"] {
        caller.make_dir(name)?;
    }
    caller.make_file("workspace/file", "")?;
    symlink("../home", caller.path("workspace/out"))?;
    symlink("workspace/tmp", caller.path("in"))?;
    for name in ["sealed", "workspace/sealed"] {
        fs::set_permissions(caller.path(name), Permissions::from_mode(0o555))?;
    }
    Ok(())
}

/// Not even a PATH: the system's own is searched, as outside.
fn empty(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for mode in MODES {
        let mut command = caller.dsh_run(["--mode", mode, "--", "env"]);
        let ended = finish(command.env_clear())?;
        let expected = if mode == "danger-full-access" { "" } else { "TMPDIR=/tmp\n" };
        let got = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, got, (Some(0), expected, ""));
    }
    problems.verdict(&"an empty environment")
}
