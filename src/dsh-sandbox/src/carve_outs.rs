//! What is taken out of what the rung gives: hidden paths, protected paths, and the names on the
//! way to them.
//!
//! A mount hides or protects a place, and a command could rename a directory on the way to it: the
//! next run would look in the wrong place. So what lies between a writable root and a carve-out,
//! symbolic links included, becomes a mount of its own that keeps its name (EBUSY).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::RequestError;
use crate::mountinfo::{self, Mount};
use crate::policy::{CarvedOut, Policy};
use crate::roots::{self, Root, Roots};
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
}

/// Looks up the hidden and protected paths of a policy.
///
/// # Errors
///
/// [`RequestError::HidesRoot`] and [`RequestError::NoHome`].
pub(crate) fn resolve(policy: &Policy, roots: &Roots) -> Result<CarveOuts, RequestError> {
    if policy.hidden.is_empty() && policy.protected.is_empty() {
        return Ok(CarveOuts::default());
    }
    let mounts = mountinfo::read().unwrap_or_default();
    let mut found = Found { roots, mounts: &mounts, places: BTreeMap::new() };
    let mut result = CarveOuts::default();
    for path in absolute(&policy.hidden, roots)? {
        match found.hide(&path)? {
            Some(place) => result.hidden.push(place),
            None => result.missing.push(path),
        }
    }
    for path in absolute(&policy.protected, roots)? {
        match found.protect(&path) {
            Some(place) => result.protected.push(place),
            None => result.missing.push(path),
        }
    }
    result.mounts = found
        .places
        .into_iter()
        .map(|(path, treatment)| CarveOut { path: path.into(), treatment })
        .collect();
    Ok(result)
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

struct Found<'a> {
    roots: &'a Roots,
    mounts: &'a [Mount],
    places: BTreeMap<PathBuf, Treatment>,
}

impl Found<'_> {
    /// Hides a path by all its names; none where there is nothing to hide.
    fn hide(&mut self, path: &Path) -> Result<Option<PathBuf>, RequestError> {
        let walked = walk(path);
        if walked.missing().is_some() {
            return Ok(None);
        }
        self.pin(&walked);
        let mut names = mountinfo::other_names(self.mounts, &walked.end);
        names.push(walked.end.clone());
        for name in names {
            let mut held = self.roots.writable.iter().chain([&self.roots.workspace]);
            if let Some(root) = held.find(|root| root.path().starts_with(&name)) {
                let (path, holds) = (path.to_owned(), root.path().to_owned());
                return Err(RequestError::HidesRoot { path, holds });
            }
            self.pin(&walk(&name));
            self.add(name, Treatment::Hidden);
        }
        Ok(Some(walked.end))
    }

    /// Protects a path by all its names, or what stands in its way, such as the file that `.git`
    /// is in a linked worktree; none where there is nothing.
    fn protect(&mut self, path: &Path) -> Option<PathBuf> {
        let walked = walk(path);
        let place = match walked.missing() {
            None => walked.end.clone(),
            Some(_) => walked.steps.iter().find(|step| step.kind == Kind::File)?.node.clone(),
        };
        self.pin(&walked);
        let mut names = mountinfo::other_names(self.mounts, &place);
        names.push(place.clone());
        for name in names {
            if self.root_of(&name).is_some() {
                self.pin(&walk(&name));
                self.add(name, Treatment::Protected);
            }
        }
        Some(place)
    }

    /// Pins what a command could rename or replace on the way.
    fn pin(&mut self, walked: &Walk) {
        let on_the_way = |step: &&Step| {
            step.kind == Kind::Link || (step.kind == Kind::Directory && step.node != walked.end)
        };
        for step in walked.steps.iter().filter(on_the_way) {
            let root = self.root_of(&step.node);
            // A root itself is a mount already.
            if root.is_some_and(|root| root.path() != step.node) {
                self.add(step.node.clone(), Treatment::Pinned);
            }
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
