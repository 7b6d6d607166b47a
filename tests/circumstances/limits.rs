//! Resource limits, priorities and large arguments of the caller's.

use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::unistd::geteuid;

use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::{CONFINED, MODES, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let passed = PASSED.iter().flat_map(|limit| {
        for_each_user(&format!("limits::{}", limit.option), move |caller| passed_on(caller, limit))
    });
    let refused = REFUSED.iter().flat_map(|limit| {
        for_each_user(&format!("limits::{}", limit.option), move |caller| refused(caller, limit))
    });
    [
        for_each_user("limits::priorities", priorities),
        for_each_user("limits::umask", umask),
        for_each_user("limits::arguments", arguments),
    ]
    .into_iter()
    .flatten()
    .chain(passed)
    .chain(refused)
    .chain([Case::new("limits::few-processes", |all| few_processes(all.dsh_run()))])
    .collect()
}

/// A limit of the caller's, in words of prlimit(1).
struct Limit {
    option: &'static str,
    /// How bash shows it, and what it shows; or what the one line says.
    letter: &'static str,
    says: &'static str,
}

const PASSED: &[Limit] = &[
    Limit { option: "--nofile=64:64", letter: "-Hn", says: "64" },
    Limit { option: "--nofile=64:1024", letter: "-Sn", says: "64" },
    Limit { option: "--nofile=1024:1024", letter: "-Hn", says: "1024" },
    Limit { option: "--fsize=65536:65536", letter: "-Hf", says: "64" },
    Limit { option: "--fsize=65536:unlimited", letter: "-Sf", says: "64" },
    Limit { option: "--as=500000000", letter: "-Hv", says: "488281" },
    Limit { option: "--data=200000000", letter: "-Hd", says: "195312" },
    Limit { option: "--stack=1048576:1048576", letter: "-Hs", says: "1024" },
    Limit { option: "--cpu=50:60", letter: "-St", says: "50" },
    Limit { option: "--memlock=0:0", letter: "-Hl", says: "0" },
    Limit { option: "--msgqueue=0:0", letter: "-Hq", says: "0" },
    Limit { option: "--sigpending=0:0", letter: "-Hi", says: "0" },
    Limit { option: "--nice=0:0", letter: "-He", says: "0" },
    Limit { option: "--rtprio=0:0", letter: "-Hr", says: "0" },
];

/// The command has the caller's limit, no wider and no narrower.
fn passed_on(caller: &Caller, limit: &Limit) -> Verdict {
    let mut problems = Problems::default();
    for mode in MODES {
        let mut command = caller.command("prlimit");
        command.arg(limit.option).arg(caller.program()).args(["--mode", mode, "-c"]);
        let ended = finish(command.arg(format!("ulimit {}; exit 7", limit.letter)))?;
        let got = (ended.status.code(), ended.stdout.trim_end(), ended.stderr.as_str());
        problems.equal(mode, got, (Some(7), limit.says, ""));
    }
    problems.verdict(&limit.option)
}

/// Too little for dsh-run itself.
const REFUSED: &[Limit] = &[
    Limit { option: "--nofile=7:7", letter: "", says: "" },
    Limit { option: "--nofile=12:12", letter: "", says: "Too many open files (EMFILE)" },
    Limit { option: "--fsize=0:0", letter: "", says: "File too large (EFBIG)" },
    Limit { option: "--fsize=512:512", letter: "", says: "File too large (EFBIG)" },
];

fn refused(caller: &Caller, limit: &Limit) -> Verdict {
    let mut problems = Problems::default();
    for mode in CONFINED {
        let mut command = caller.command("prlimit");
        command.arg(limit.option).arg(caller.program());
        let ended = finish(command.args(["--mode", mode, "-c", "echo ran; : >new"]))?;
        problems.equal(mode, (ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
        problems.equal(mode, ended.stderr.lines().count(), 1);
        problems.check(ended.stderr.starts_with("dsh-run: "), || ended.stderr.clone());
        problems.contains(mode, &ended.stderr, limit.says);
        problems.equal(mode, fs::read_dir(caller.workspace())?.count(), 0);
    }
    problems.verdict(&limit.option)
}

/// The kernel counts all processes of a user, so this one is nobody else's. (It does not count those
/// of the global uid 0.)
fn few_processes(dsh_run: std::path::PathBuf) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can become a user of whom nothing else runs");
    }
    let uid = 0x3000_0000 + std::process::id();
    let caller = Caller::new(Persona::of(uid), dsh_run)?;
    let mut problems = Problems::default();
    let run = |mode: &str, count: u32| {
        let mut command = caller.command("prlimit");
        command.arg(format!("--nproc={count}:{count}")).arg(caller.program());
        finish(command.args(["--mode", mode, "-c", "ulimit -u; exit 7"]))
    };
    for mode in CONFINED {
        for count in 1..=3 {
            let ended = run(mode, count)?;
            let what = format!("{mode} {count}");
            problems.equal(&what, (ended.status.code(), ended.stdout.as_str()), (Some(125), ""));
            problems.equal(&what, ended.stderr.lines().count(), 1);
            problems.contains(&what, &ended.stderr, "(EAGAIN)");
        }
        let ended = run(mode, 20)?;
        let got = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, got, (Some(7), "20\n", ""));
    }
    problems.verdict(&"few processes")
}

fn priorities(caller: &Caller) -> Verdict {
    const LOOK: &str = "nice; ionice; chrt -p $$ | head -1 | sed 's/.*: //'; \
                        cat /proc/self/oom_score_adj; grep Cpus_allowed_list /proc/self/status";
    let lower = "echo 500 >/proc/self/oom_score_adj; \
                 cpu=$(sed -n 's/Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status); \
                 exec nice -n 7 ionice -c 3 chrt --batch 0 taskset -c $cpu \"$@\"";
    let outside = finish(caller.command("sh").args(["-c", lower, "sh", "bash", "-c", LOOK]))?;
    let mut problems = Problems::default();
    problems.contains("outside", &outside.stdout, "7\nidle\nSCHED_BATCH\n500\n");
    for mode in MODES {
        let mut command = caller.command("sh");
        command.args(["-c", lower, "sh"]).arg(caller.program());
        let ended = finish(command.args(["--mode", mode, "-c", LOOK]))?;
        let got = (ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, got, (outside.stdout.as_str(), outside.stderr.as_str()));
    }
    problems.verdict(&outside.stdout)
}

fn umask(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for (mask, file, directory) in [("077", 0o600, 0o700), ("000", 0o666, 0o777), ("777", 0, 0)] {
        for mode in ["workspace-write", "danger-full-access"] {
            let name = format!("{mask}-{mode}");
            let script = "umask $1; exec \"$0\" --mode $2 -- sh -c 'touch $0; mkdir $0.d' $3";
            let mut command = caller.command("sh");
            let ended = finish(
                command.args(["-c", script]).arg(caller.program()).args([mask, mode, &name]),
            )?;
            problems.equal(&name, (ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
            let path = caller.path("workspace").join(&name);
            let mode_of = |path: &std::path::Path| path.metadata().map(|m| m.mode() & 0o7777);
            problems.equal(&name, mode_of(&path)?, file);
            problems.equal(&name, mode_of(&path.with_extension("d"))?, directory);
            // Whoever may not look into it could not remove it later.
            fs::remove_dir(path.with_extension("d"))?;
        }
    }
    problems.verdict(&"umask")
}

/// Nearly as much as the kernel takes: a quarter of the stack's limit for arguments and environment
/// together, 128 kB for each.
fn arguments(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    for mode in MODES {
        let argument = "a".repeat(120_000);
        let mut command = caller.command("prlimit");
        command.arg("--stack=8388608").arg(caller.program()).args(["--mode", mode, "--"]);
        command.args(["bash", "-c", "echo $# $((${#1} + ${#L})); exit 7", "bash"]);
        command.args(std::iter::repeat_n(&argument, 15)).env("L", &argument);
        let ended = finish(&mut command)?;
        let got = (ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str());
        problems.equal(mode, got, (Some(7), "15 240000\n", ""));
    }
    problems.verdict(&"arguments")
}
