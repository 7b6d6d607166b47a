//! File systems whose servers have gone silent, as a network that is gone leaves them: doctor does
//! not wait for one anywhere, and a run that has no business there starts.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_facts::{HostReport, Layer};
use nix::libc;
use nix::mount::{MsFlags, mount};

use crate::support::cases::{Case, Verdict};
use crate::support::dead_mounts::{DeadAutomount, LAST, Swallowing, Unread};
use crate::support::fixture::Fixture;
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::USER;

const BOTH: &[&str] = &["read-only", "workspace-write"];

/// Where a dead file system is, and the modes that have no business there.
const PLACES: [(&str, Place, &[&str]); 4] = [
    ("below-root", Place::BelowRoot, BOTH),
    ("below-tmp", Place::BelowTmp, BOTH),
    ("tmp", Place::Tmp, BOTH),
    // Whether a writable root holds the home directory has to be looked up.
    ("home", Place::Home, &["read-only"]),
];

#[derive(Clone, Copy)]
enum Place {
    BelowRoot,
    BelowTmp,
    Tmp,
    Home,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unread,
    Swallowing,
    Automount,
}

const KINDS: [(&str, Kind); 3] =
    [("unread", Kind::Unread), ("swallowing", Kind::Swallowing), ("automount", Kind::Automount)];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind_name, kind) in KINDS {
        let name = format!("dead_file_systems::the-silence-is-real::{kind_name}");
        cases.push(Case::new(name, move |_| the_silence_is_real(kind)));
        for uid in [0, USER] {
            for (place_name, place, modes) in PLACES {
                let name = format!("dead_file_systems::{place_name}::{kind_name}::{uid}");
                cases.push(Case::new(name, move |all| elsewhere(all, kind, place, modes, uid)));
            }
        }
    }
    for uid in [0, USER] {
        let name = format!("dead_file_systems::current-directory::{uid}");
        cases.push(Case::new(name, move |all| current_directory(all, uid, "")));
        let name = format!("dead_file_systems::below-one-on-an-old-kernel::{uid}");
        cases.push(Case::new(name, move |all| past_killing(all, uid)));
    }
    cases.push(Case::new("dead_file_systems::detached-current-directory", |all| {
        current_directory(all, 0, "umount -l \"$dead\" &&")
    }));
    cases
}

/// A mounted dead file system, for as long as the guard lives.
enum Guard {
    Unread { _guard: Unread },
    Swallowing(Swallowing),
    Automount { _guard: DeadAutomount },
}

impl Guard {
    fn mount(kind: Kind, place: &Path, fixture: &Fixture) -> io::Result<Self> {
        Ok(match kind {
            Kind::Unread => Self::Unread { _guard: Unread::mount(place)? },
            Kind::Automount => Self::Automount { _guard: DeadAutomount::mount(place)? },
            Kind::Swallowing => {
                let server = Swallowing::mount(place, &release(fixture))?;
                assert!(!place.join(LAST).exists());
                Self::Swallowing(server)
            }
        })
    }

    /// Whether it has been dead all the time.
    fn end(self) -> io::Result<bool> {
        match self {
            Self::Swallowing(server) => server.end(),
            Self::Unread { .. } | Self::Automount { .. } => Ok(true),
        }
    }
}

fn release(fixture: &Fixture) -> PathBuf {
    fixture.report().join("release")
}

impl Kind {
    fn obstacle(self) -> Option<&'static str> {
        let (device, reason) = match self {
            Self::Unread | Self::Swallowing => ("/dev/fuse", "no /dev/fuse"),
            Self::Automount => ("/dev/autofs", "no /dev/autofs"),
        };
        Stage::obstacle().or((!Path::new(device).exists()).then_some(reason))
    }
}

/// Without this, that nobody waits would prove nothing.
fn the_silence_is_real(kind: Kind) -> Verdict {
    const LONG: Duration = Duration::from_millis(300);
    if let Some(reason) = kind.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(0)?;
    let (waited, ended) = with_private_mounts(|| {
        let place = fixture.outside();
        let guard = Guard::mount(kind, &place, &fixture)?;
        let mut asking = Command::new("ls").arg(place.join("")).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(LONG);
        let waited = asking.try_wait()?.is_none();
        if matches!(guard, Guard::Automount { .. }) {
            asking.kill()?;
        }
        guard.end()?;
        Ok((waited, asking.wait()?))
    })?;
    let mut problems = Problems::default();
    problems.check(waited, || "somebody answered".to_owned());
    problems.check(!ended.success(), || "there was something to list".to_owned());
    problems.verdict(&ended)
}

/// doctor finds all that a host offers, and a command runs.
fn elsewhere(programs: &Programs, kind: Kind, place: Place, modes: &[&str], uid: u32) -> Verdict {
    if let Some(reason) = kind.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(uid)?;
    let below_tmp = tempfile::Builder::new().prefix("dsh-dead-").tempdir_in("/tmp")?;
    let (mounted, home) = match place {
        Place::BelowRoot => (Path::new("/mnt"), Path::new("/")),
        Place::BelowTmp => (below_tmp.path(), Path::new("/")),
        Place::Tmp => (Path::new("/tmp"), Path::new("/")),
        Place::Home => (Path::new("/mnt"), Path::new("/mnt/user")),
    };
    // A trigger at /tmp would be pulled by looking whether it is a directory.
    let modes = match (kind, place) {
        (Kind::Automount, Place::Tmp) => &[],
        _ => modes,
    };
    let home = format!("HOME={}", home.display());
    let stage = Stage::new(&[], uid);
    let (diagnosis, runs, dead) = with_private_mounts(|| {
        let guard = Guard::mount(kind, mounted, &fixture)?;
        let watch = |arguments: &[&str]| {
            let program = [OsString::from("env"), home.as_str().into(), programs.dsh_run().into()];
            let words = program.into_iter().chain(arguments.iter().map(Into::into));
            stage.watch(programs, &fixture, words)
        };
        let diagnosis = watch(&["doctor", "--json"])?;
        let runs = modes.iter().map(|mode| watch(&["--mode", mode, "--", "echo", "ran"]));
        let runs = runs.collect::<io::Result<Vec<Ran>>>()?;
        Ok((diagnosis, runs, guard.end()?))
    })?;
    let mut problems = Problems::default();
    problems.check(dead, || "the server went away before the end".to_owned());
    check_diagnosis(&mut problems, &diagnosis);
    problems.equal("left behind by doctor", diagnosis.left.as_str(), "");
    for ran in &runs {
        problems.equal("status of a run", ran.status, 0);
        problems.equal("stdout of a run", ran.stdout.as_str(), "ran\n");
        problems.equal("left behind by a run", ran.left.as_str(), "");
    }
    problems.verdict(&(diagnosis, runs))
}

/// doctor is started in a directory that dies right before.
fn current_directory(programs: &Programs, uid: u32, before: &str) -> Verdict {
    if let Some(reason) = Kind::Swallowing.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(uid)?;
    let script = format!(
        "dead=$1; shift; cd \"$dead\" && {before}! [ -e {LAST} ] && exec \"$@\" doctor --json"
    );
    let (ran, dead) = with_private_mounts(|| {
        let place = fixture.outside();
        let server = Swallowing::mount(&place, &release(&fixture))?;
        let words = ["sh".into(), "-c".into(), script.into(), "sh".into(), place.into()];
        let words = words.into_iter().chain([programs.dsh_run().into_os_string()]);
        let ran = Stage::new(&[], uid).watch(programs, &fixture, words)?;
        Ok((ran, server.end()?))
    })?;
    let mut problems = Problems::default();
    problems.check(dead, || "the server went away before the end".to_owned());
    check_diagnosis(&mut problems, &ran);
    let left = if before.is_empty() { "" } else { "mounts or settings of the host have changed\n" };
    problems.equal("left behind", ran.left.as_str(), left);
    problems.verdict(&ran)
}

fn check_diagnosis(problems: &mut Problems, ran: &Ran) {
    problems.equal("status of doctor", ran.status, 0);
    problems.equal("stderr of doctor", ran.stderr.as_str(), "");
    match serde_json::from_str::<HostReport>(&ran.stdout) {
        Ok(report) => {
            let refused = report.steps.iter().filter(|step| !step.offered).map(|step| step.step);
            let refused: Vec<Layer> = refused.filter(|step| *step != Layer::Landlock).collect();
            problems.equal("steps that are refused", refused, Vec::new());
        }
        Err(error) => problems.check(false, || error.to_string()),
    }
}

/// An old kernel makes mounts read-only by their names, and one of them lies below a dead file
/// system. The process that waits there cannot be killed; doctor leaves it and says so.
fn past_killing(programs: &Programs, uid: u32) -> Verdict {
    // The stage cannot end before that process does.
    const SCRIPT: &str =
        r#"release=$1; shift; "$@" doctor; status=$?; : >"$release"; exit $status"#;
    if let Some(reason) = Kind::Swallowing.obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(uid)?;
    let rule = format!("{}:{}", libc::SYS_mount_setattr, libc::ENOSYS);
    let (ran, dead) = with_private_mounts(|| {
        let place = fixture.outside();
        let server = Swallowing::mount(&place, &release(&fixture))?;
        let none = None::<&str>;
        mount(none, &place.join("below"), Some("tmpfs"), MsFlags::empty(), none)?;
        assert!(!place.join(LAST).exists());
        let words =
            ["sh".into(), "-c".into(), SCRIPT.into(), "sh".into(), release(&fixture).into()];
        let words = words.into_iter().chain([programs.dsh_run().into_os_string()]);
        let ran = Stage::new(&["-E", &rule], uid).watch(programs, &fixture, words)?;
        Ok((ran, server.end()?))
    })?;
    let mut problems = Problems::default();
    problems.check(dead, || "doctor waited for the server".to_owned());
    problems.equal("status", ran.status, 125);
    problems.equal("stdout", ran.stdout.as_str(), "");
    problems.equal("lines on stderr", ran.stderr.lines().count(), 1);
    problems.contains("stderr", &ran.stderr, "ETIMEDOUT");
    problems.verdict(&ran)
}
