//! System calls that are refused whatever their arguments: each is a denial of its own kind, unless
//! the caller's own rights would not have been enough outside.

use std::fs;

use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::observed::{Observed, script};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("refused_calls::each", each);
    cases.extend(for_each_rung("refused_calls::programs", programs));
    cases.extend(for_each_rung("refused_calls::sockets", sockets));
    cases
}

/// An attempt, its errno, the call, and whether everybody may make it outside.
const CALLS: &[(&str, &str, &str, bool)] = &[
    ("unshare NEWUSER", "EPERM", "unshare", true),
    ("keyctl", "EPERM", "keyctl", true),
    ("add-key", "EPERM", "add_key", true),
    ("mount-tmpfs /mnt", "EPERM", "mount", false),
    ("umount /", "EPERM", "umount2", false),
    ("pivot-root /", "EPERM", "pivot_root", false),
    ("unshare NEWNS", "EPERM", "unshare", false),
    ("setns /proc/self/ns/net", "EPERM", "setns", false),
    ("swapon /etc/passwd", "EPERM", "swapon", false),
    ("reboot", "EPERM", "reboot", false),
    ("finit-module", "EPERM", "finit_module", false),
    // What programs take for a kernel without it, and do without.
    ("io-uring-setup", "ENOSYS", "", true),
    ("syscall 600", "ENOSYS", "", true),
];

fn each(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let root = caller.persona().is_root();
    let bpf = fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled");
    let for_everybody = bpf.is_ok_and(|text| text.trim() == "0");
    let bpf = ("bpf", "EPERM", "bpf", for_everybody);
    for (text, errno, call, everybody) in CALLS.iter().copied().chain([bpf]) {
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &format!("$P {text}")))?;
        let answer = ran.answer()?;
        problems.check(answer.ends_with(errno), || format!("{text}: {answer}"));
        let line = format!("{call} - - {errno} seccomp dsh-probe 1");
        let line = [line.as_str()];
        let denied = !call.is_empty() && (root || everybody);
        ran.check_denials(&mut problems, text, if denied { &line } else { &[] });
    }
    problems.verdict(&mode)
}

/// What people type.
fn programs(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let ran = Observed::run(caller, &["--mode", mode], ["unshare", "-Ur", "true"])?;
    problems.check(ran.status != 0, || "unshare succeeded".to_owned());
    ran.check_denials(&mut problems, "unshare", &["unshare - - EPERM seccomp unshare 1"]);
    let ran = Observed::run(caller, &["--mode", mode], ["mount", "-t", "tmpfs", "x", "/mnt"])?;
    problems.check(ran.status != 0, || "mount succeeded".to_owned());
    if caller.persona().is_root() {
        // Newer ones try the newer calls first.
        let calls = ran.facts.denials.iter().map(|denial| denial.operation.as_str());
        let calls: Vec<&str> = calls.collect();
        problems.check(calls.iter().any(|call| ["mount", "fsopen"].contains(call)), || {
            format!("mount: {calls:?}")
        });
        ran.check_shape(&mut problems, "mount");
    } else {
        ran.check_denials(&mut problems, "mount", &[]);
    }
    problems.verdict(&mode)
}

/// Sockets that are refused: their family and type are told.
fn sockets(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for (text, errno, denial) in [
        ("socket UNIX DGRAM 0", "ESOCKTNOSUPPORT", "socket - unix datagram"),
        ("socket UNIX RAW 0", "ESOCKTNOSUPPORT", "socket - unix raw"),
        ("socketpair UNIX DGRAM", "ESOCKTNOSUPPORT", "socketpair - unix datagram"),
        ("socket ALG SEQPACKET 0", "EAFNOSUPPORT", "socket - alg seqpacket"),
        ("socket VSOCK STREAM 0", "EAFNOSUPPORT", "socket - vsock stream"),
        ("socket UNIX STREAM 0", "ok", ""),
        ("socket UNIX SEQPACKET 0", "ok", ""),
        ("socketpair UNIX STREAM", "ok", ""),
        ("socket INET DGRAM 0", "ok", ""),
    ] {
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &format!("$P {text}")))?;
        let answer = ran.answer()?;
        problems.check(answer.ends_with(errno), || format!("{text}: {answer}"));
        let line = format!("{denial} {errno} seccomp dsh-probe 1");
        let line = [line.as_str()];
        ran.check_denials(&mut problems, text, if denial.is_empty() { &[] } else { &line });
    }
    problems.verdict(&mode)
}
