//! Mounts that hosts have: submounts, covered ones, broken ones, and kernels that cannot set a
//! whole tree read-only in one call.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::mount::{MsFlags, mount};

use crate::mount_table::in_reach;
use crate::support::cases::{Case, Verdict};
use crate::support::fixture::{Fixture, own};
use crate::support::private_mounts::with_private_mounts;
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::{Programs, Ran, Stage};
use crate::table::USER;

pub(crate) fn cases() -> Vec<Case> {
    // Linux 5.12 brought mount_setattr.
    let old_kernel = format!("{}:{}", libc::SYS_mount_setattr, libc::ENOSYS);
    let kernels = [("new-kernel", vec![]), ("old-kernel", vec!["-E".to_owned(), old_kernel])];
    let mut cases = Vec::new();
    for (kernel, options) in kernels {
        for uid in [0, USER] {
            let stage = Stage { options: options.clone(), uid };
            let mut add = |name: &str, test: fn(&Programs, &Stage) -> Verdict| {
                let stage = stage.clone();
                let name = format!("mounts::{name}::{kernel}::{uid}");
                cases.push(Case::new(name, move |programs| test(programs, &stage)));
            };
            add("read-only-but-the-workspace", read_only_but_the_workspace);
            add("deleted-source", deleted_source);
            add("silent-file-system", silent_file_system);
            add("out-of-reach", out_of_reach);
        }
    }
    cases
}

fn read_only_but_the_workspace(programs: &Programs, stage: &Stage) -> Verdict {
    const SCRIPT: &str = r#"
for place in outside/new outside/mounted/new workspace/new workspace/mounted/new; do
    if err=$({ : >"$1/$place"; } 2>&1); then echo "$place written"; else echo "$err" >&2; fi
done
cat /proc/self/mountinfo
"#;
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(stage.uid)?;
    let ran = with_private_mounts(|| {
        for directory in [fixture.outside(), fixture.workspace()] {
            mount_tmpfs(&directory.join("mounted"), stage.uid)?;
        }
        let top = fixture.top().to_string_lossy();
        let command = ["--mode", "workspace-write", "--", "bash", "-c", SCRIPT, "write", &*top];
        stage.run(programs, &fixture, &command)
    })?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, 0);
    let refused = ran.stderr.matches("Read-only file system").count();
    problems.equal("writes refused as read-only", refused, 2);
    let (written, table): (Vec<&str>, Vec<&str>) =
        ran.stdout.lines().partition(|line| line.ends_with(" written"));
    let expected = ["workspace/new written", "workspace/mounted/new written"];
    problems.equal("written", written, expected.to_vec());
    check_table(&mut problems, &table.join("\n"), &fixture.workspace());
    problems.verdict(&ran)
}

/// Whatever is not the sandbox's own or below the workspace is read-only, and nothing outside /dev
/// honours set-user-id bits or device nodes.
fn check_table(problems: &mut Problems, table: &str, workspace: &Path) {
    let scratch = ["/tmp", "/dev/shm"].map(Path::new);
    let mounts = in_reach(table);
    problems.check(mounts.len() > 10, || format!("a short mount table: {mounts:?}"));
    for mount in mounts {
        let writable = mount.point.starts_with(workspace) || scratch.contains(&&*mount.point);
        problems.check(mount.has(if writable { "rw" } else { "ro" }), || {
            format!("expected {}: {mount:?}", if writable { "rw" } else { "ro" })
        });
        problems.check(mount.has("nosuid"), || format!("expected nosuid: {mount:?}"));
        // The nodes of /dev are mounts, and so is each node over a masked file of /proc.
        let places = ["/dev", "/proc"].map(Path::new);
        let node = places.iter().any(|place| mount.point.starts_with(place));
        problems.check(mount.has("nodev") || node, || format!("expected nodev: {mount:?}"));
    }
}

/// A mount that has stopped sandboxes from starting.
struct Odd {
    place: PathBuf,
    /// Kept until the run has ended.
    _server: Option<File>,
    /// Whether a write can be tried, in the file or in the directory.
    attempt: Option<PathBuf>,
    /// Whether the user can come to it at all: elsewhere its flags do not matter, and an old kernel
    /// gives nobody else the means to set them.
    reachable: bool,
}

/// The host has replaced a file that is a bind mount's source, as happens to /etc/resolv.conf.
fn deleted_source(programs: &Programs, stage: &Stage) -> Verdict {
    starts(programs, stage, |fixture| {
        let (source, place) = (fixture.outside().join("source"), fixture.outside().join("target"));
        fs::write(&source, "")?;
        own(&source, stage.uid)?;
        fs::write(&place, "")?;
        let none = None::<&str>;
        mount(Some(&source), &place, none, MsFlags::MS_BIND, none)?;
        fs::remove_file(source)?;
        let attempt = Some(place.clone());
        Ok(Odd { place, _server: None, attempt, reachable: true })
    })
}

/// A FUSE file system of root's, whose server never answers: no other user may look into it, and
/// whoever does waits for ever.
fn silent_file_system(programs: &Programs, stage: &Stage) -> Verdict {
    if !Path::new("/dev/fuse").exists() {
        return skip("no /dev/fuse");
    }
    starts(programs, stage, |fixture| {
        let place = fixture.outside().join("fuse");
        fs::create_dir(&place)?;
        let server = File::options().read(true).write(true).open("/dev/fuse")?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("silent"), &place, Some("fuse"), flags, Some(&*options))?;
        Ok(Odd { place, _server: Some(server), attempt: None, reachable: true })
    })
}

/// A mount behind a directory that only root may search.
fn out_of_reach(programs: &Programs, stage: &Stage) -> Verdict {
    starts(programs, stage, |fixture| {
        let locked = fixture.outside().join("locked");
        fs::create_dir(&locked)?;
        let place = locked.join("mounted");
        mount_tmpfs(&place, stage.uid)?;
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o700))?;
        let attempt = Some(place.join("new"));
        Ok(Odd { place, _server: None, attempt, reachable: stage.uid == 0 })
    })
}

/// A run on a host with one odd mount starts, and does not make that mount writable.
fn starts(
    programs: &Programs,
    stage: &Stage,
    prepare: impl FnOnce(&Fixture) -> io::Result<Odd> + Send,
) -> Verdict {
    const SCRIPT: &str =
        r#"cat /proc/self/mountinfo; [ -z "$1" ] || { : >"$1"; } 2>/dev/null || exit 3"#;
    if let Some(reason) = Stage::obstacle() {
        return skip(reason);
    }
    let fixture = Fixture::new(stage.uid)?;
    let (odd, ran) = with_private_mounts(|| {
        let odd = prepare(&fixture)?;
        let attempt = odd.attempt.clone().unwrap_or_default();
        let attempt = attempt.to_string_lossy();
        let command =
            ["--mode", "workspace-write", "--", "bash", "-c", SCRIPT, "attempt", &*attempt];
        let ran = stage.run(programs, &fixture, &command)?;
        Ok((odd, ran))
    })?;
    let mut problems = Problems::default();
    problems.equal("exit status", ran.status, if odd.attempt.is_some() { 3 } else { 0 });
    problems.equal("stderr", ran.stderr.as_str(), "");
    let mounts = in_reach(&ran.stdout);
    match mounts.iter().find(|mount| mount.point.starts_with(&odd.place)) {
        Some(mount) => {
            problems.check(mount.has("ro") || !odd.reachable, || format!("expected ro: {mount:?}"))
        }
        None => problems.check(false, || format!("{} is not mounted", odd.place.display())),
    }
    problems.verdict(&Short(&ran))
}

/// A mount table is long, and what matters of it has been said.
struct Short<'a>(&'a Ran);

impl std::fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ran")
            .field("status", &self.0.status)
            .field("stderr", &self.0.stderr)
            .field("facts", &self.0.facts)
            .finish_non_exhaustive()
    }
}

fn mount_tmpfs(place: &Path, owner: u32) -> io::Result<()> {
    fs::create_dir(place)?;
    mount(Some("submount"), place, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    own(place, owner)
}
