//! What a request must come to, worked out slowly from the promises: what is hidden cannot be read
//! by any name, what is protected cannot be written by any name, and nothing on the way to either
//! can be moved.

use std::collections::BTreeSet;

use nix::errno::Errno;

use crate::carve_outs::CarveOuts;
use crate::generate::Asked;
use crate::walk::Walker;
use crate::world::{Kind, Node, Place, World};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A root, as it was named, that is no directory or cannot be reached.
    Root(String, Errno),
    /// A root that holds the home directory, or everything.
    TooWide(String),
    /// A root, as it was named, on the way to which lies another.
    ThroughRoot(String),
    /// The command could replace the profile.
    Profile,
    /// A hidden path, as it was named, that holds a root.
    HidesRoot(String),
}

/// What a request comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prediction {
    pub(crate) workspace: String,
    pub(crate) writable: Vec<String>,
    pub(crate) hidden: Vec<String>,
    pub(crate) protected: Vec<String>,
    pub(crate) missing: Vec<String>,
    pub(crate) effects: Effects,
}

/// What a request comes to, place by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// Places that cannot be read.
    pub(crate) hidden: BTreeSet<Place>,
    /// Places that can be written.
    pub(crate) writable: BTreeSet<Place>,
    /// What cannot be moved or removed, although it lies in something that can be written: where
    /// something is mounted by the sandbox.
    pub(crate) pinned: BTreeSet<Node>,
}

/// A directory that was named to be written, or worked in.
struct Given {
    path: String,
    place: Place,
}

/// A request in a world.
pub(crate) struct Model<'a> {
    pub(crate) world: &'a World,
    pub(crate) walker: Walker,
    pub(crate) asked: &'a Asked,
    /// The name by which the home directory is known.
    pub(crate) home: String,
    /// The profile's file.
    pub(crate) profile: String,
}

impl Model<'_> {
    /// Works it out.
    pub(crate) fn predict(&self) -> Result<Prediction, Refusal> {
        let mut result = Prediction::default();
        let named = self.asked.workspace.as_deref().unwrap_or(&self.asked.directory);
        let workspace = self.directory(named)?;
        result.workspace = self.world.path(workspace.place);
        let from_profile = |index: usize| -> Vec<String> {
            let lists = self.asked.profile.iter().flat_map(|lists| &lists[index]);
            lists.map(|path| self.of_profile(path, &result.workspace)).collect()
        };
        let [writable, hidden, protected] = [0, 1, 2].map(from_profile);

        let mut given = vec![workspace];
        for path in &self.asked.writable {
            given.push(self.directory(path)?);
        }
        let roots = if self.asked.writes {
            for path in writable {
                match self.directory(&path) {
                    Err(Refusal::Root(_, Errno::ENOENT)) => result.missing.push(path),
                    found => given.push(found?),
                }
            }
            self.check_roots(&given)?
        } else {
            Vec::new()
        };
        result.writable = roots.iter().map(|root| self.world.path(*root)).collect();
        result.writable.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        let mut held = roots.clone();
        held.push(given[0].place);

        let asked = |paths: &[String]| paths.iter().map(|path| self.absolute(path)).collect();
        let mut carve_outs = CarveOuts { model: self, roots: &roots, effects: Effects::default() };
        carve_outs.effects.pinned.extend(roots.iter().map(|root| root.node));
        for path in [hidden, asked(&self.asked.hidden)].concat() {
            match carve_outs.hide(&path, &held)? {
                Some(place) => result.hidden.push(self.world.path(place)),
                None => result.missing.push(path),
            }
        }
        let in_roots = |place: &Place| roots.iter().any(|root| self.world.is_below(*place, *root));
        carve_outs.effects.writable = self.world.places().into_iter().filter(in_roots).collect();
        for path in [protected, asked(&self.asked.protected)].concat() {
            match carve_outs.protect(&path) {
                Some(place) => result.protected.push(self.world.path(place)),
                None => result.missing.push(path),
            }
        }
        result.effects = carve_outs.effects;
        let Effects { hidden, writable, .. } = &mut result.effects;
        writable.retain(|place| !hidden.contains(place));
        Ok(result)
    }

    /// A path of the request, from the current directory.
    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}/{path}", self.asked.directory)
        }
    }

    /// A path of the profile, from the workspace or the home directory.
    fn of_profile(&self, path: &str, workspace: &str) -> String {
        match path.strip_prefix("~/") {
            Some(rest) => format!("{}/{}", self.home, rest.trim_start_matches('/')),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{workspace}/{path}"),
        }
    }

    fn directory(&self, path: &str) -> Result<Given, Refusal> {
        let refused = |errno| Refusal::Root(path.to_owned(), errno);
        let end = self.walker.walk(self.world, &self.absolute(path)).end;
        match end.map_err(|(errno, _)| refused(errno))? {
            place if matches!(self.world.kind(place.node), Kind::Directory { .. }) => {
                Ok(Given { path: path.to_owned(), place })
            }
            _ => Err(refused(Errno::ENOTDIR)),
        }
    }

    /// The outermost of the roots, none of which may be too wide, or decide about another.
    fn check_roots(&self, given: &[Given]) -> Result<Vec<Place>, Refusal> {
        let is_below = |place, outer| self.world.is_below(place, outer);
        let home = self.walker.walk(self.world, &self.home).end.ok();
        for root in given {
            let holds_home = home.is_some_and(|home| is_below(home, root.place));
            if root.place == self.world.root() || (holds_home && !self.asked.allow_home) {
                return Err(Refusal::TooWide(self.world.path(root.place)));
            }
        }
        let mut roots: Vec<Place> = Vec::new();
        for root in given.iter().map(|root| root.place) {
            let inside = |other: &Given| other.place != root && is_below(root, other.place);
            if !given.iter().any(inside) && !roots.contains(&root) {
                roots.push(root);
            }
        }
        for root in given {
            let others: Vec<_> =
                roots.iter().copied().filter(|other| !is_below(root.place, *other)).collect();
            if self.is_led_by(&self.absolute(&root.path), &others) {
                return Err(Refusal::ThroughRoot(root.path.clone()));
            }
        }
        if self.asked.profile.is_some() && self.is_led_by(&self.profile, &roots) {
            return Err(Refusal::Profile);
        }
        Ok(roots)
    }

    /// Whether a name on the way lies in one of the roots, by whatever other name.
    fn is_led_by(&self, path: &str, roots: &[Place]) -> bool {
        let asked = self.walker.walk(self.world, path).asked;
        asked.into_iter().any(|directory| {
            std::iter::once(directory)
                .chain(self.names(directory.node))
                .any(|name| roots.iter().any(|root| self.world.is_below(name, *root)))
        })
    }

    /// Every place of a node that can be seen.
    pub(crate) fn names(&self, node: Node) -> Vec<Place> {
        self.world.places().into_iter().filter(|place| place.node == node).collect()
    }
}
