//! Names that are hard to tell: with newlines, not UTF-8, too long, not readable, or that lead
//! somewhere in roundabout ways.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use dsh_facts::base64_if_not_utf8;

use crate::outside::Outside;
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, attempt, probe, script};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("names::strange", strange);
    cases.extend(for_each_user("names::strange-program", strange_program));
    cases.extend(for_each_user("names::summary-of-strange-ones", summary));
    cases.extend(for_each_rung("names::long", long));
    cases.extend(for_each_rung("names::memory", memory));
    cases.extend(for_each_rung("names::roundabout", roundabout));
    cases
}

const STRANGE: [&[u8]; 5] =
    [b"a\nb", b"\xff\xfe", b"\x1b[31m", b"quote\"'\\", "\u{202e}txt".as_bytes()];

fn strange(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    for name in STRANGE {
        let path = caller.path("outside").join(OsStr::from_bytes(name));
        let words = [OsStr::new("mkdir"), path.as_os_str()];
        let ran = Observed::run(caller, &["--mode", mode], words)?;
        let path = caller.path("").canonicalize()?.join("outside").join(OsStr::from_bytes(name));
        let [denial] = &ran.facts.denials[..] else {
            problems.check(false, || format!("{name:?}: {:?}", ran.facts.denials));
            continue;
        };
        problems.equal("path", denial.path.as_deref(), Some(&*path.to_string_lossy()));
        problems.equal("bytes", denial.path_base64.clone(), base64_if_not_utf8(&path));
        problems.equal("errno", denial.errno.as_str(), "EROFS");
        ran.check_shape(&mut problems, "strange");
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// A program may call itself what it wants.
fn strange_program(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    Outside::of(caller)?;
    let name = OsStr::from_bytes(b"p\n\xff) S 1");
    std::fs::copy(probe(caller), caller.path("workspace").join(name))?;
    let program = caller.path("workspace").join(name).into_os_string();
    let words = attempt(caller, "mkdir @/outside/new 0755").into_iter().skip(1);
    let words = [program].into_iter().chain(words.map(Into::into));
    let ran = Observed::run(caller, &[], words)?;
    let line = "mkdir write @/outside/new EROFS mount p\n\u{fffd}) S 1 1";
    ran.check_denials(&mut problems, "denials", &[line]);
    problems.verdict(&ran)
}

/// A line is a line, and a terminal gets nothing from a name but its text.
fn summary(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    Outside::of(caller)?;
    let mut command = caller.dsh_run(["--summary", "--", "bash", "-c"]);
    command.arg("for name; do mkdir \"../outside/$name\" 2>/dev/null; done; exit 1").arg("bash");
    command.args(STRANGE.map(OsStr::from_bytes));
    let ended = finish(&mut command)?;
    problems.equal("lines", ended.stderr.lines().count(), 1 + STRANGE.len());
    let control = ended.stderr.chars().any(|c| c.is_control() && c != '\n');
    problems.check(!control, || "a control character".to_owned());
    problems.verdict(&ended.stderr)
}

fn long(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let name = "n".repeat(255);
    let denial = |name: &str| format!("open write @/outside/{name} EROFS mount dsh-probe 1");
    for (text, errno, expected) in [
        ("long-path @/outside/ new 4095".to_owned(), "openat EROFS", Some(denial("new"))),
        ("long-path @/outside/ new 4096".to_owned(), "openat ENAMETOOLONG", None),
        ("long-path @/outside/ new 70000".to_owned(), "openat ENAMETOOLONG", None),
        (format!("long-path @/outside/ {name} 500"), "openat EROFS", Some(denial(&name))),
        (format!("long-path @/outside/ {name}n 500"), "openat ENAMETOOLONG", None),
        ("long-path /tmp/ new 4095".to_owned(), "openat ok", None),
    ] {
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, &text))?;
        problems.equal(&text, ran.answer()?, errno.to_owned());
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        ran.check_denials(&mut problems, &text, &expected);
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// The kernel says what is wrong with memory, and nothing is denied.
fn memory(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let ran =
        Observed::run(caller, &["--mode", mode], attempt(caller, "bad-pointers @/outside/new"))?;
    let answer = ran.answer()?;
    // openat2 is not there for root.
    let expected = "socket ok:".to_owned() + &" EFAULT".repeat(12);
    problems.equal("answer", answer.replace("ENOSYS", "EFAULT"), expected);
    ran.check_denials(&mut problems, "bad pointers", &[]);
    let ran = Observed::run(caller, &["--mode", mode], attempt(caller, "page-end @/outside/new"))?;
    problems.equal("answer", ran.answer()?, "ok: Err(EROFS), Err(EFAULT)".to_owned());
    let line = "open write @/outside/new EROFS mount dsh-probe 1";
    ran.check_denials(&mut problems, "page end", &[line]);
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// A path, and the place to which it leads, if that is outside.
const ROUNDABOUT: &[(&str, &str)] = &[
    ("../outside/new", "new"),
    ("./../workspace/.././outside//full/../new", "new"),
    ("/tmp/link/new", "new"),
    ("/tmp/chain/new", "new"),
    ("/tmp/dangling", "new"),
    ("/proc/self/cwd/../outside/new", "new"),
    ("/proc/thread-self/cwd/../outside/new", "new"),
    ("/proc/self/root$T/outside/new", "new"),
    ("/proc/self/fd/5/new", "new"),
    ("/dev/fd/5/full/new", "full/new"),
    ("/proc/$$/fd/5/new", "new"),
    ("/proc/$$/cwd/../outside/new", "new"),
    ("$T/outside/link/new", "full/new"),
    ("$T/outside/link/../new", "new"),
    // These lead to what may be written, to what is not there, or nowhere.
    ("/tmp/new", ""),
    ("/proc/self/fd/6/new", ""),
    ("/tmp/back/new", ""),
    ("/tmp/loop/new", ""),
    ("/tmp/gone/new", ""),
    ("/dev/stderr", ""),
    ("/dev/fd/2", ""),
    ("/dev/null", ""),
];

fn roundabout(caller: &Caller, mode: &str) -> Verdict {
    const PREPARE: &str = "mkdir /tmp/dir /tmp/gone
        ln -s $T/outside /tmp/link; ln -s link /tmp/chain; ln -s $T/outside/new /tmp/dangling
        ln -s ../proc/self/cwd/../../../../tmp /tmp/back; ln -s loop /tmp/loop
        exec 5<$T/outside 6</tmp/dir";
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    for (path, place) in ROUNDABOUT {
        let text = format!("{PREPARE}\n$P openat {path} 'WRONLY|CREAT' 0644");
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
        let line = format!("open write @/outside/{place} EROFS mount dsh-probe 1");
        let line = [line.as_str()];
        ran.check_denials(&mut problems, path, if place.is_empty() { &[] } else { &line });
        let refused = ran.answer()?.contains("EROFS");
        problems.equal(path, refused, !place.is_empty());
    }
    let text = "cd /tmp; mkdir dir; cd dir; rmdir ../dir; touch new";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    ran.check_denials(&mut problems, "a directory that is gone", &[]);
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}
