//! What hidden and protected paths must come to: all that shows the same content counts, and
//! nothing that leads there can be moved.

use std::collections::BTreeSet;

use nix::errno::Errno;

use crate::model::{Effects, Model, Refusal};
use crate::walk::Walk;
use crate::world::{Node, Place};

/// What is hidden and protected, path by path.
pub(crate) struct CarveOuts<'a> {
    pub(crate) model: &'a Model<'a>,
    pub(crate) roots: &'a [Place],
    pub(crate) effects: Effects,
}

impl CarveOuts<'_> {
    /// Hides a path; none where there is nothing to hide.
    pub(crate) fn hide(&mut self, path: &str, held: &[Place]) -> Result<Option<Place>, Refusal> {
        let walk = self.model.walker.walk_leniently(self.model.world, path);
        let Some(place) = walk.end.ok().or_else(|| self.closed(&walk)) else { return Ok(None) };
        let places = self.shown_by(place);
        if held.iter().any(|root| places.contains(root)) {
            return Err(Refusal::HidesRoot(path.to_owned()));
        }
        self.pin_all(&walk, place, &places);
        self.effects.hidden.extend(places);
        Ok(Some(place))
    }

    /// Protects a path, or what is in the way; none where there is nothing.
    pub(crate) fn protect(&mut self, path: &str) -> Option<Place> {
        let walk = self.model.walker.walk_leniently(self.model.world, path);
        let in_the_way = || match walk.end {
            Err((Errno::ENOTDIR, file)) => Some(file),
            _ => self.closed(&walk),
        };
        let place = walk.end.ok().or_else(in_the_way)?;
        let places = self.shown_by(place);
        self.pin_all(&walk, place, &places);
        self.effects.writable.retain(|place| !places.contains(place));
        Some(place)
    }

    /// A directory in the way that the command, to whom it belongs as well, could open.
    fn closed(&self, walk: &Walk) -> Option<Place> {
        let Err((Errno::EACCES, place)) = walk.end else { return None };
        self.is_in_root(place).then_some(place)
    }

    fn is_in_root(&self, place: Place) -> bool {
        self.roots.iter().any(|root| self.model.world.is_below(place, *root))
    }

    /// Every place that shows what is at a place or below it, be it covered there, and what lies
    /// below such places.
    fn shown_by(&self, place: Place) -> BTreeSet<Place> {
        let world = self.model.world;
        let mut shown: BTreeSet<Place> = world.below(place).into_iter().collect();
        let tops = shown.iter().filter(|one| **one == place || world.is_mount(**one));
        let contents: BTreeSet<Node> = tops.flat_map(|top| world.contents(top.node)).collect();
        let all = world.places();
        let shows: Vec<_> = all.iter().filter(|one| contents.contains(&one.node)).collect();
        let is_shown = |one: &&Place| shows.iter().any(|outer| world.is_below(**one, **outer));
        shown.extend(all.iter().filter(is_shown));
        shown
    }

    /// Pins what leads to a place, by the path that was asked for and by its own names.
    fn pin_all(&mut self, walk: &Walk, place: Place, places: &BTreeSet<Place>) {
        let world = self.model.world;
        let mut pinned: Vec<_> = walk.passed.iter().copied().filter(|one| *one != place).collect();
        let outermost = places.iter().filter(|one| !places.contains(&world.up(**one)));
        for outermost in outermost {
            let mut up = world.up(*outermost);
            while up != world.root() {
                pinned.push(up);
                up = world.up(up);
            }
        }
        for one in pinned {
            let names = self.model.names(one.node);
            let names = if self.is_in_root(one) { vec![one] } else { names };
            if names.into_iter().any(|name| self.is_in_root(name)) {
                self.effects.pinned.insert(one.node);
            }
        }
        // The place itself becomes a mount.
        self.effects.pinned.extend(
            places.iter().filter(|one| !places.contains(&world.up(**one))).map(|one| one.node),
        );
    }
}
