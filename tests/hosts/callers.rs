//! Callers that are confined themselves: in dsh-run, in bubblewrap, in a chroot.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dsh_facts::{Facts, Layer, Network, State};
use nix::mount::{MsFlags, mount};

use crate::claims;
use crate::support::caller::finish;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::Fixture;
use crate::support::kernel;
use crate::support::persona::Persona;
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::running::Finished;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Stage, dsh_run};
use crate::table::USER;

const MODES: [&str; 2] = ["read-only", "workspace-write"];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in MODES {
        for persona in [Persona::ROOT, Persona::ordinary()] {
            let who = persona.label();
            for outer in MODES {
                let name = format!("callers::dsh-run-{outer}::{mode}::{who}");
                cases.push(Case::new(name, move |all| nested(all, persona, outer, mode)));
            }
            for (bubble, options) in BUBBLES {
                let name = format!("callers::{bubble}::{mode}::{who}");
                cases.push(Case::new(name, move |all| in_bwrap(all, persona, options, mode)));
            }
        }
        for uid in [0, USER] {
            for (kind, root) in [("a-mount", Root::Mount), ("a-directory", Root::Directory)] {
                let name = format!("callers::chroot-into-{kind}::{mode}::{uid}");
                cases.push(Case::new(name, move |all| in_chroot(all, root, uid, mode)));
            }
        }
    }
    cases
}

/// What the inner command tries: outside first, then in the workspace.
const ATTEMPT: &str = r#"
for place in "$1/outside/new" "$1/workspace/new"; do
    if err=$({ : >"$place"; } 2>&1); then echo written; else echo "${err##*: }"; fi
done
unshare --user true 2>/dev/null || echo no namespaces
exit 9
"#;

const READ_ONLY: &str = "Read-only file system";
const DENIED: &str = "Permission denied";

/// The inner run has no namespaces of its own and stands on Landlock, within the outer one.
fn nested(programs: &Programs, persona: Persona, outer: &str, inner: &str) -> Verdict {
    // In the outer sandbox only its scratch can take the inner facts.
    const OUTER: &str = r#""$@"; echo "status $?"; cat /tmp/facts.json"#;
    if let Some(reason) = persona.obstacle() {
        return skip(reason);
    }
    if kernel::landlock().is_err() {
        return skip("the kernel has no Landlock to nest in");
    }
    let fixture = Fixture::new(persona.id())?;
    let mut words = dsh_run(programs, &fixture, &["--mode", outer, "--", "sh", "-c", OUTER, "sh"]);
    words.push(programs.dsh_run().into());
    words.extend(["--mode", inner, "--facts", "/tmp/facts.json", "--"].map(Into::into));
    words.extend(attempt(&fixture));
    let finished = run(persona, &fixture, words)?;
    let mut problems = Problems::default();
    problems.equal("outer status", finished.status.code(), Some(0));
    let (said, facts) = finished.stdout.split_once('{').unwrap_or((&finished.stdout, ""));
    let workspace = match (outer, inner) {
        ("read-only", _) => READ_ONLY,
        (_, "read-only") => DENIED,
        _ => "written",
    };
    let expected = [READ_ONLY, workspace, "no namespaces", "status 9"];
    problems.equal("said", said.lines().collect::<Vec<_>>(), expected.to_vec());
    let facts: Facts = serde_json::from_str(&format!("{{{facts}"))?;
    let enforcement = claims::check_shape(&mut problems, &facts);
    problems.equal("network", facts.network, Network::Off);
    let expected: &[(Layer, State, Option<&str>)] = &[
        (Layer::UserNamespace, State::Absent, Some("EPERM")),
        (Layer::Observer, State::Absent, Some("EBUSY")),
        (Layer::Limits, State::Enforced, None),
        (Layer::Capabilities, State::Enforced, None),
        (Layer::Landlock, State::Enforced, None),
        (Layer::Descriptors, State::Enforced, None),
        (Layer::Seccomp, State::Enforced, None),
    ];
    let expected =
        expected.iter().map(|(layer, state, errno)| claims::line(*layer, *state, *errno));
    problems.equal("layers", claims::layers(&enforcement), expected.collect());
    problems.verdict(&(finished.stdout, finished.stderr))
}

const BUBBLES: [(&str, &[&str]); 2] = [
    ("bwrap-user", &["--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]),
    ("bwrap-pid", &["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"]),
];

/// bubblewrap leaves namespaces to the inner run, but no file that can be written; so the facts go
/// through a descriptor.
fn in_bwrap(programs: &Programs, persona: Persona, options: &[&str], mode: &str) -> Verdict {
    const OPEN_FACTS: &str = r#"facts=$1; shift; exec "$@" 3>"$facts""#;
    if let Some(reason) = persona.obstacle() {
        return skip(reason);
    }
    if Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("bwrap is not installed");
    }
    let fixture = Fixture::new(persona.id())?;
    let mut words: Vec<OsString> = ["sh", "-c", OPEN_FACTS, "sh"].map(Into::into).into();
    words.push(fixture.facts().into());
    words.push("bwrap".into());
    words.extend(options.iter().map(Into::into));
    words.push(programs.dsh_run().into());
    words.extend(["--mode", mode, "--facts-fd", "3", "--"].map(Into::into));
    words.extend(attempt(&fixture));
    let finished = run(persona, &fixture, words)?;
    let mut problems = Problems::default();
    problems.equal("status", finished.status.code(), Some(9));
    let expected = [READ_ONLY, READ_ONLY, "no namespaces"];
    // Where bubblewrap made a user namespace, a root caller's files are nobody's.
    let said = finished.stdout.replace(DENIED, READ_ONLY);
    problems.equal("said", said.lines().collect::<Vec<_>>(), expected.to_vec());
    let stream = fs::read_to_string(fixture.facts())?;
    let facts: Facts = serde_json::from_str(stream.lines().last().unwrap_or_default())?;
    let enforcement = claims::check_shape(&mut problems, &facts);
    let layers = claims::layers(&enforcement);
    for layer in [Layer::UserNamespace, Layer::Mount, Layer::Network, Layer::NamespaceLock] {
        let line = claims::line(layer, State::Enforced, None);
        problems.check(layers.contains(&line), || format!("{line} is not in {layers:?}"));
    }
    problems.verdict(&(finished.stdout, finished.stderr, stream))
}

/// What a chroot leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The root of a mount.
    Mount,
    /// A directory with mounts below it: nothing can be set on it as a mount.
    Directory,
}

/// In a chroot the kernel refuses user namespaces. Root needs none for mounts of its own, where the
/// root of the chroot is a mount.
fn in_chroot(programs: &Programs, root: Root, uid: u32, mode: &str) -> Verdict {
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let own_mounts = uid == 0 && root == Root::Mount;
    if !own_mounts && kernel::landlock().is_err() {
        return skip("the kernel has no Landlock to fall back to");
    }
    let fixture = Fixture::new(uid)?;
    let place = fixture.top().join("root");
    let ran = with_private_mounts(|| {
        fs::create_dir(&place)?;
        match root {
            Root::Mount => bind(Path::new("/"), &place)?,
            Root::Directory => furnish(&place)?,
        }
        let enter = format!(r#"cd "{}" && exec "$@""#, fixture.workspace().display());
        let mut words: Vec<OsString> = vec!["chroot".into()];
        words.push(format!("--userspec={uid}:{uid}").into());
        words.extend(["--groups=".into(), place.clone().into_os_string()]);
        words.extend(["sh", "-c", &enter, "sh"].map(Into::into));
        words.extend(dsh_run(programs, &fixture, &["--mode", mode, "--"]));
        words.extend(attempt(&fixture));
        Stage::new(&[], 0).watch(programs, &fixture, words)
    })?;
    let mut problems = Problems::default();
    problems.equal("status", ran.status, 9);
    problems.equal("left behind", ran.left.as_str(), "");
    let refused = if own_mounts { READ_ONLY } else { DENIED };
    let workspace = if mode == "read-only" { refused } else { "written" };
    let expected = [refused, workspace, "no namespaces"];
    problems.equal("said", ran.stdout.lines().collect(), expected.to_vec());
    let facts = ran.facts()?;
    let enforcement = claims::check_shape(&mut problems, facts);
    let layers = claims::layers(&enforcement);
    let refused = claims::line(Layer::UserNamespace, State::Absent, Some("EPERM"));
    problems.check(layers.contains(&refused), || format!("{refused} is not in {layers:?}"));
    let enforced = layers.contains(&claims::line(Layer::Mount, State::Enforced, None));
    problems.equal("mounts of its own", enforced, own_mounts);
    let network = if own_mounts { Network::Loopback } else { Network::Off };
    problems.equal("network", facts.network, network);
    problems.verdict(&ran)
}

/// The host's system below a plain directory, with its symbolic links as they are.
fn furnish(place: &Path) -> io::Result<()> {
    for name in ["bin", "etc", "lib", "lib64", "usr", "proc", "dev", "tmp", "var"] {
        let (source, target) = (Path::new("/").join(name), place.join(name));
        if let Ok(link) = fs::read_link(&source) {
            symlink(link, target)?;
        } else if source.is_dir() {
            fs::create_dir(&target)?;
            bind(&source, &target)?;
        }
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    let none = None::<&str>;
    mount(Some(source), target, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
    Ok(())
}

fn attempt(fixture: &Fixture) -> [OsString; 5] {
    let top = PathBuf::from(fixture.top());
    ["bash".into(), "-c".into(), ATTEMPT.into(), "attempt".into(), top.into()]
}

fn run(persona: Persona, fixture: &Fixture, words: Vec<OsString>) -> io::Result<Finished> {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(fixture.workspace()).stdin(Stdio::null());
    persona.dress(&mut command);
    finish(&mut command)
}
