//! What is taken out of what the rung gives: hidden paths, protected paths, and the names on the
//! way to them.
//!
//! A mount hides or protects a place, and a command could rename a directory on the way to it: the
//! next run would look in the wrong place. So what lies between a writable root and a carve-out,
//! symbolic links included, becomes a mount of its own that keeps its name (EBUSY).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use dsh_facts::{Gap, SandboxMode, text};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::error::RequestError;
use crate::mountinfo;
use crate::other_names::{OtherName, other_names};
use crate::policy::{CarvedOut, Policy};
use crate::root::Root;
use crate::roots::{self, Roots};
use crate::walk::{Kind, Step, Walk, walk};

/// One mount of the kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarveOut {
    /// Its place, with no symbolic link on the way.
    pub path: OsString,
    /// What becomes of it.
    pub treatment: Treatment,
}

/// What becomes of a place. Of two treatments the later one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Treatment {
    /// It keeps its name.
    Pinned,
    /// And it stays read-only, with all below it.
    Protected,
    /// It cannot be read: something empty is in its place.
    Hidden,
}

/// The carve-outs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CarveOuts {
    /// Every mount, outermost first.
    pub(crate) mounts: Vec<CarveOut>,
    /// What is hidden, as resolved.
    pub(crate) hidden: Vec<PathBuf>,
    /// What is protected, as resolved.
    pub(crate) protected: Vec<PathBuf>,
    /// What does not exist, so that there is nothing to hide or protect.
    pub(crate) missing: Vec<PathBuf>,
    /// What mounts cannot keep.
    pub(crate) gaps: Vec<Gap>,
}

impl CarveOuts {
    /// Whether something is to be hidden or protected, for which there must be mounts.
    pub(crate) fn need_mounts(&self) -> bool {
        self.mounts.iter().any(|one| one.treatment > Treatment::Pinned)
    }
}

/// Looks up the hidden and protected paths of a policy.
///
/// # Errors
///
/// [`RequestError::CoversRoot`], [`RequestError::CoversOwn`] and [`RequestError::NoHome`].
pub(crate) fn resolve(policy: &Policy, roots: &Roots) -> Result<CarveOuts, RequestError> {
    if !policy.carves_out() {
        return Ok(CarveOuts::default());
    }
    let mut found = Found { roots, places: BTreeMap::new() };
    let mut result = CarveOuts::default();
    for path in absolute(&policy.hidden, roots)? {
        match found.hide(&path)? {
            Some(place) => result.hidden.push(place),
            None => result.missing.push(path),
        }
    }
    let mut unprotected = Vec::new();
    for path in absolute(&policy.protected, roots)? {
        match found.protect(&path)? {
            Some(place) => result.protected.push(place),
            None => {
                if policy.mode == SandboxMode::WorkspaceWrite {
                    unprotected.push(text(&path));
                }
                result.missing.push(path);
            }
        }
    }
    if !unprotected.is_empty() {
        result.gaps.push(Gap {
            effect: "protected".to_owned(),
            reason: format!(
                "what does not exist cannot be protected, and a command may create it: {}",
                unprotected.join(" ")
            ),
            remedy: "look for it after the run, before a program outside reads it".to_owned(),
        });
    }
    result.mounts = found
        .places
        .into_iter()
        .map(|(path, treatment)| CarveOut { path: path.into(), treatment })
        .collect();
    Ok(result)
}

/// The gap that is left when the host replaces what is hidden or protected while a command runs.
pub(crate) fn uncovered(place: &OsString) -> Gap {
    Gap {
        effect: "uncovered".to_owned(),
        reason: format!(
            "the host replaced or removed {} while the command ran, which took the mount over it \
             away",
            text(place)
        ),
        remedy: "hide or protect the directory that holds it".to_owned(),
    }
}

/// The paths of both kinds, absolute.
fn absolute(paths: &CarvedOut, roots: &Roots) -> Result<Vec<PathBuf>, RequestError> {
    let workspace = roots.workspace.path();
    let by_profile = paths.by_profile.iter().map(|path| roots::expand(path, workspace));
    // A path on the command line is relative to the current directory, as any other there.
    let by_request = paths.by_request.iter().map(|path| {
        if path.is_absolute() {
            Ok(path.clone())
        } else {
            Ok(roots::current_directory()?.join(path))
        }
    });
    by_profile.chain(by_request).collect()
}

/// Refuses what the sandbox has of its own, and differently: a process's directory in /proc, which is
/// the looking one's, and the nodes of /dev.
fn check_own(what: &'static str, path: &Path, place: &Path) -> Result<(), RequestError> {
    let process = place.strip_prefix("/proc").ok().and_then(|rest| rest.components().next());
    let process = process.and_then(|name| name.as_os_str().to_str()?.parse::<u32>().ok());
    let node = place.starts_with("/dev") && !place.starts_with("/dev/shm");
    let own = match (process, node) {
        (Some(_), _) => "/proc",
        (None, true) => "/dev",
        (None, false) => return Ok(()),
    };
    Err(RequestError::CoversOwn { what, path: path.to_owned(), own })
}

struct Found<'a> {
    roots: &'a Roots,
    places: BTreeMap<PathBuf, Treatment>,
}

impl Found<'_> {
    /// Hides a path by all its names; none where there is nothing to hide.
    fn hide(&mut self, path: &Path) -> Result<Option<PathBuf>, RequestError> {
        let walked = walk(path);
        let place = match walked.missing() {
            None => walked.end.clone(),
            Some(step) => match self.closed(step) {
                Some(directory) => directory,
                None => return Ok(None),
            },
        };
        self.pin(&walked, &place);
        check_own("hidden", path, &place)?;
        for name in self.names(&place) {
            let mut held = self.roots.writable.iter().chain([&self.roots.workspace]);
            if let Some(root) = held.find(|root| root.path().starts_with(&name)) {
                let (path, holds) = (path.to_owned(), root.path().to_owned());
                return Err(RequestError::CoversRoot { what: "hidden", path, holds });
            }
            self.pin(&walk(&name), &name);
            self.add(name, Treatment::Hidden);
        }
        Ok(Some(place))
    }

    /// Protects a path by all its names, or what stands in its way, such as the file that `.git`
    /// is in a linked worktree; none where there is nothing.
    fn protect(&mut self, path: &Path) -> Result<Option<PathBuf>, RequestError> {
        let walked = walk(path);
        let place = match walked.missing() {
            None => walked.end.clone(),
            Some(step) => {
                let file = || walked.steps.iter().find(|step| step.kind == Kind::File);
                match self.closed(step).or_else(|| Some(file()?.node.clone())) {
                    Some(place) => place,
                    None => return Ok(None),
                }
            }
        };
        check_own("protected", path, &place)?;
        self.pin(&walked, &place);
        for name in self.names(&place) {
            if self.root_of(&name).is_some() {
                self.pin(&walk(&name), &name);
                self.add(name, Treatment::Protected);
            } else {
                let roots = self.roots;
                for root in roots.writable.iter().filter(|root| root.path().starts_with(&name)) {
                    self.add(root.path().to_owned(), Treatment::Protected);
                }
            }
        }
        Ok(Some(place))
    }

    /// Every name of a place, and of what is mounted below it; none lies below another. What is
    /// mounted below another name only is not seen here, and keeps its names.
    fn names(&self, place: &Path) -> Vec<PathBuf> {
        let mounts = &self.roots.mounts;
        let below = mountinfo::points_below(mounts, place).map(|mount| mount.point.as_path());
        let mut names = BTreeSet::from([place.to_owned()]);
        for one in below.chain([place]) {
            let others = other_names(mounts, one);
            names.extend(others.iter().map(|other| other.path().to_owned()));
        }
        roots::outermost(names, PathBuf::as_path)
    }

    /// The directory that keeps the caller from seeing what is missing, where the command could
    /// open it: what lies behind it then shares its treatment.
    fn closed(&self, missing: &Step) -> Option<PathBuf> {
        let closed = missing.kind == Kind::Missing(Errno::EACCES)
            && self.root_of(&missing.directory).is_some();
        closed.then(|| missing.directory.clone())
    }

    /// Pins what a command could rename or replace on the way to a place.
    fn pin(&mut self, walked: &Walk, place: &Path) {
        let on_the_way = |step: &&Step| {
            step.kind == Kind::Link || (step.kind == Kind::Directory && step.node != place)
        };
        for step in walked.steps.iter().filter(on_the_way) {
            if self.root_of(&step.node).is_some() {
                self.pin_one(&step.node);
                continue;
            }
            // Out of reach by this name, but perhaps not by another.
            for other in other_names(&self.roots.mounts, &step.node) {
                if let OtherName::Whole(name) = other {
                    self.pin_one(&name);
                }
            }
        }
    }

    fn pin_one(&mut self, node: &Path) {
        // A root itself is a mount already.
        if self.root_of(node).is_some_and(|root| root.path() != node) {
            self.add(node.to_owned(), Treatment::Pinned);
        }
    }

    fn root_of(&self, path: &Path) -> Option<&Root> {
        self.roots.writable.iter().find(|root| path.starts_with(root.path()))
    }

    fn add(&mut self, path: PathBuf, treatment: Treatment) {
        let place = self.places.entry(path).or_insert(treatment);
        *place = treatment.max(*place);
    }
}
