//! Every layer's failure, made real once and seen to refuse: a system call of the layer fails with
//! an errno that does not mean that the host lacks the layer, and so is no reason to run with less.
//!
//! tests/hostsim.c makes the calls fail; only root can. `DSH_MUST_RUN=1` turns skips into failures.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use dsh_facts::{ErrorCode, Layer, Outcome};
use nix::libc;

use support::cases::{Case, Verdict};
use support::fixture::Fixture;
use support::kernel;
use support::problems::Problems;
use support::skip::skip;
use support::snapshot::Snapshot;
use support::stage::{Programs, Stage};

const READ_ONLY: &str = "read-only";
const WORKSPACE_WRITE: &str = "workspace-write";
/// The rungs differ in what they mount.
const BOTH: &[&str] = &[READ_ONLY, WORKSPACE_WRITE];
const EITHER: &[&str] = &[WORKSPACE_WRITE];

const ROOT: u32 = 0;
const USER: u32 = 65534;

/// A call that fails, and what dsh-run must say about it.
#[derive(Clone, Copy)]
struct Failure {
    name: &'static str,
    call: libc::c_long,
    /// Only where this argument has this value.
    only: Option<(u32, i64)>,
    /// What the call answers; 0 pretends that it has succeeded.
    answer: i32,
    layer: Layer,
    step: &'static str,
    errno: &'static str,
    modes: &'static [&'static str],
    users: &'static [u32],
}

impl Failure {
    const fn new(name: &'static str, call: libc::c_long, layer: Layer, step: &'static str) -> Self {
        Self {
            name,
            call,
            only: None,
            answer: libc::EIO,
            layer,
            step,
            errno: "EIO",
            modes: EITHER,
            users: &[ROOT, USER],
        }
    }

    const fn only(self, argument: u32, value: i64) -> Self {
        Self { only: Some((argument, value)), ..self }
    }

    const fn modes(self, modes: &'static [&'static str]) -> Self {
        Self { modes, ..self }
    }

    /// The option of hostsim.
    fn rule(&self) -> String {
        let only = self.only.map(|(argument, value)| format!(":{argument}:{value}"));
        format!("{}{}:{}", self.call, only.unwrap_or_default(), self.answer)
    }
}

/// Flags of the mount of a proc file system, by which it differs from the others.
const PROC_FLAGS: i64 = (libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC).cast_signed();
/// Flags of the clone that makes a command's own namespaces.
const NAMESPACE_FLAGS: i64 =
    (libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_PIDFD | libc::SIGCHLD) as i64;

const FAILURES: &[Failure] = &[
    Failure::new("user-namespace", libc::SYS_unshare, Layer::UserNamespace, "unshare"),
    Failure::new("clone", libc::SYS_clone, Layer::PidNamespace, "clone").only(0, NAMESPACE_FLAGS),
    Failure::new("death-signal", libc::SYS_prctl, Layer::PidNamespace, "PR_SET_PDEATHSIG")
        .only(0, libc::PR_SET_PDEATHSIG as i64),
    Failure::new("mount-setattr", libc::SYS_mount_setattr, Layer::Mount, "mount_setattr")
        .modes(BOTH),
    Failure::new("open-tree", libc::SYS_open_tree, Layer::Mount, "open_tree").modes(BOTH),
    Failure::new("move-mount", libc::SYS_move_mount, Layer::Mount, "move_mount").modes(BOTH),
    Failure::new("openat2", libc::SYS_openat2, Layer::Mount, "open").modes(BOTH),
    Failure::new("scratch", libc::SYS_mount, Layer::Mount, "mount tmpfs").modes(BOTH),
    Failure::new("proc", libc::SYS_mount, Layer::Proc, "mount proc").only(3, PROC_FLAGS),
    Failure::new("network", libc::SYS_ioctl, Layer::Network, "bring lo up")
        .only(1, libc::SIOCSIFFLAGS.cast_signed()),
    Failure {
        // The world's own unshare has more flags than this one, which must be refused.
        answer: 0,
        errno: "EEXIST",
        ..Failure::new("namespace-lock", libc::SYS_unshare, Layer::NamespaceLock, "verify")
            .only(0, libc::CLONE_NEWUSER as i64)
    },
    Failure::new("bounding-set", libc::SYS_prctl, Layer::Capabilities, "bounding set")
        .only(0, libc::PR_CAPBSET_DROP as i64),
    Failure::new("no-new-privs", libc::SYS_prctl, Layer::Capabilities, "no_new_privs")
        .only(0, libc::PR_SET_NO_NEW_PRIVS as i64),
    Failure::new("capset", libc::SYS_capset, Layer::Capabilities, "capset").modes(BOTH),
    Failure::new("ambient-set", libc::SYS_prctl, Layer::Capabilities, "ambient set")
        .only(0, libc::PR_CAP_AMBIENT as i64),
    Failure::new("landlock-rule", libc::SYS_landlock_add_rule, Layer::Landlock, "add_rule"),
    Failure::new("landlock", libc::SYS_landlock_restrict_self, Layer::Landlock, "restrict_self")
        .modes(BOTH),
    // The filter comes with its listener, in one call.
    Failure::new("seccomp", libc::SYS_seccomp, Layer::Observer, "seccomp listener")
        .only(0, libc::SECCOMP_SET_MODE_FILTER as i64)
        .modes(BOTH),
    Failure::new("descriptors", libc::SYS_close_range, Layer::Descriptors, "close_range")
        .only(2, libc::CLOSE_RANGE_CLOEXEC as i64)
        .modes(BOTH),
    // The warden's own: what it inherits would be every command's.
    Failure::new("warden-descriptors", libc::SYS_close_range, Layer::Descriptors, "close_range")
        .only(2, 0),
    Failure::new("core-limit", libc::SYS_prlimit64, Layer::Limits, "RLIMIT_CORE")
        .only(1, libc::RLIMIT_CORE as i64),
    Failure {
        // It does not bind root, who gets kernel.pid_max instead.
        users: &[USER],
        ..Failure::new("process-limit", libc::SYS_prlimit64, Layer::Limits, "RLIMIT_NPROC")
            .only(1, libc::RLIMIT_NPROC as i64)
    },
];

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for failure in FAILURES {
        for mode in failure.modes {
            for uid in failure.users {
                let name = format!("failing_layers::{}::{mode}::{uid}", failure.name);
                cases.push(Case::new(name, move |all| refuses(all, failure, mode, *uid)));
            }
        }
    }
    support::cases::run(env!("CARGO_BIN_EXE_dsh-run"), cases)
}

fn refuses(programs: &Programs, failure: &Failure, mode: &str, uid: u32) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    if failure.layer == Layer::Landlock && kernel::landlock().is_err() {
        return skip("the kernel has no Landlock");
    }
    let fixture = Fixture::new(uid)?;
    // The command could make it anywhere outside the sandbox, and in the workspace inside.
    let marks = ["workspace/mark", "outside/mark"].map(|mark| fixture.top().join(mark));
    let script = r#"for mark; do : >"$mark"; done"#;
    let marks = marks.each_ref().map(|mark| mark.to_string_lossy());
    let command = ["--mode", mode, "--", "sh", "-c", script, "mark", &*marks[0], &*marks[1]];
    let before = (Snapshot::of(&fixture.outside())?, Snapshot::of(&fixture.workspace())?);
    let settings = settings();

    let stage = Stage::new(&["-E", &failure.rule()], uid);
    let ran = stage.run(programs, &fixture, &command)?;

    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 125);
    problems.equal("stdout", ran.stdout.as_str(), "");
    problems.equal("lines on stderr", ran.stderr.lines().count(), 1);
    let said = ran.stderr.strip_prefix("dsh-run: ");
    problems.check(said.is_some(), || "stderr is not dsh-run's".to_owned());
    let said = said.unwrap_or_default().trim_end();
    for part in [failure.layer.as_str(), failure.step, failure.errno] {
        problems.contains("stderr", said, part);
    }
    let facts = ran.facts()?;
    problems.equal("outcome", facts.outcome, Outcome::Refused);
    problems.equal("enforcement", facts.enforcement.clone(), None);
    problems.equal("exit", facts.exit, None);
    match &facts.error {
        None => problems.check(false, || "no error in the facts".to_owned()),
        Some(error) => {
            problems.equal("code", error.code, ErrorCode::SandboxUnavailable);
            problems.equal("layer", error.layer, Some(failure.layer));
            problems.equal("step", error.step.as_deref(), Some(failure.step));
            problems.equal("errno", error.errno.as_deref(), Some(failure.errno));
            problems.equal("message", error.message.as_str(), said);
        }
    }
    problems.equal("left behind", ran.left.as_str(), "");
    let mut changes = Snapshot::of(&fixture.outside())?.changes_since(&before.0);
    changes.extend(Snapshot::of(&fixture.workspace())?.changes_since(&before.1));
    problems.equal("changes to the host", changes, Vec::new());
    problems.equal("settings of the host", self::settings(), settings);
    problems.verdict(&ran)
}

/// Settings of the whole host that a layer sets in namespaces of its own.
fn settings() -> BTreeMap<&'static str, String> {
    let names = [
        "/proc/sys/kernel/pid_max",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start",
        "/proc/sys/user/max_user_namespaces",
    ];
    names.map(|name| (name, fs::read_to_string(name).unwrap_or_default())).into()
}
