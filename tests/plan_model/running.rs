//! Requests that are really run: what a program in the sandbox can do with each place.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Command;

use crate::disk::{Look, look};
use crate::generate::Asked;
use crate::model::Prediction;
use crate::walk::Walker;
use crate::worker::Order;
use crate::world::{Kind, Node, Place, World};

/// As the survey tells it.
fn identity(look: &Look) -> String {
    format!("{}:{}", look.identity.0, look.identity.1)
}

/// One request and its world.
pub(crate) struct Runner<'a> {
    pub(crate) order: &'a Order,
    pub(crate) world: &'a World,
    pub(crate) walker: Walker,
    pub(crate) asked: &'a Asked,
    pub(crate) profile: &'a str,
}

impl Runner<'_> {
    /// Runs the request, and says what came out otherwise than predicted.
    pub(crate) fn run(&self, prediction: &Prediction) -> io::Result<Vec<String>> {
        let places: Vec<_> =
            self.world.places().into_iter().filter(|one| *one != self.world.base()).collect();
        let before = self.looks(&places);
        let output = self.command(&places)?.output()?;
        let after = self.looks(&places);
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Ok(vec![format!("the run fails: {words}")]);
        }
        let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let detail = said["detail"].as_str().unwrap_or_default();
        let mut found = Vec::new();
        for (place, got) in places.iter().zip(detail.lines()) {
            let look = before.get(place);
            let expected = self.expected(prediction, *place, look);
            let own = look.map(identity).unwrap_or_default();
            // What stands for something hidden is anything but that.
            let other = expected.contains("other") && !got.contains(&own);
            let mut words = got.split(' ');
            let got = match (words.next(), words.next(), words.next()) {
                (Some(write), Some(_), Some(moved)) if other => format!("{write} other {moved}"),
                _ => got.to_owned(),
            };
            if got != expected {
                let path = self.world.path(*place);
                found.push(format!("{path}: expected {expected}, got {got}"));
            }
        }
        if detail.lines().count() != places.len() {
            found.push(format!("{} places, but the survey says {detail}", places.len()));
        }
        found.extend(self.changes(prediction, &before, &after));
        Ok(found)
    }

    fn command(&self, places: &[Place]) -> io::Result<Command> {
        let list = format!("{}/places", self.order.directory);
        let line = |place: &Place| {
            let kind = match self.world.kind(place.node) {
                Kind::Directory { .. } => "directory",
                Kind::File => "file",
                Kind::Link(_) => "link",
            };
            format!("{kind} {}\n", self.world.path(*place))
        };
        fs::write(&list, places.iter().map(line).collect::<String>())?;
        let mut command = Command::new(&self.order.dsh_run);
        command.env("HOME", format!("{}/home", self.order.directory));
        command.current_dir(&self.asked.directory);
        match &self.asked.profile {
            Some(_) => command.args(["--profile", self.profile]),
            None if self.asked.writes => command.args(["--mode", "workspace-write"]),
            None => command.args(["--mode", "read-only"]),
        };
        for (option, paths) in [
            ("--workspace", self.asked.workspace.as_slice()),
            ("--writable", &self.asked.writable),
            ("--hide", &self.asked.hidden),
            ("--protect", &self.asked.protected),
        ] {
            for path in paths {
                command.arg(format!("{option}={path}"));
            }
        }
        if self.asked.allow_home {
            command.arg("--allow-home");
        }
        command.args(["--workdir", "/", "--", &self.order.dsh_probe, "survey", &list]);
        Ok(command)
    }

    /// What can be done with a place: written, read and moved.
    fn expected(&self, prediction: &Prediction, place: Place, look: Option<&Look>) -> String {
        let effects = &prediction.effects;
        let up = self.world.up(place);
        let is_link = matches!(self.world.kind(place.node), Kind::Link(_));
        let [write, read, r#move] = match self.barrier(prediction, up) {
            Some(errno) => {
                // A mask is there, if empty, and read-only.
                let in_mask = effects.hidden.contains(&up)
                    && self.barrier(prediction, self.world.up(up)).is_none();
                let r#move = if in_mask && self.walker.is_root { "EROFS" } else { errno };
                [if is_link { "-" } else { errno }, errno, r#move].map(str::to_owned)
            }
            None => {
                let kind = self.world.kind(place.node);
                let is_closed = !self.walker.may_search(self.world, place);
                let is_hidden = effects.hidden.contains(&place);
                let write = match kind {
                    Kind::Link(_) => "-",
                    // A mask: a closed directory or file, which only root opens.
                    _ if is_hidden && !self.walker.is_root => "EACCES",
                    _ if is_closed => "EACCES",
                    _ if !effects.writable.contains(&place) => "EROFS",
                    _ => "ok",
                };
                let read = match (kind, look) {
                    _ if is_hidden && self.walker.is_root => "other".to_owned(),
                    _ if is_hidden => "EACCES".to_owned(),
                    (Kind::Directory { .. }, _) if is_closed => "EACCES".to_owned(),
                    (_, Some(look)) => identity(look),
                    (_, None) => "unseen".to_owned(),
                };
                let r#move = if !effects.writable.contains(&up) {
                    "EROFS"
                } else if is_hidden || self.is_busy(prediction, place) {
                    "EBUSY"
                } else {
                    "ok"
                };
                [write.to_owned(), read, r#move.to_owned()]
            }
        };
        format!("{write} {read} {move}")
    }

    /// Why nothing is found in a directory, if so.
    fn barrier(&self, prediction: &Prediction, directory: Place) -> Option<&'static str> {
        let up = self.world.up(directory);
        let above = || (up != directory).then(|| self.barrier(prediction, up)).flatten();
        let is_hidden = prediction.effects.hidden.contains(&directory);
        above().or_else(|| match (is_hidden, self.walker.is_root) {
            (true, true) => Some("ENOENT"),
            (true, false) => Some("EACCES"),
            (false, _) => (!self.walker.may_search(self.world, directory)).then_some("EACCES"),
        })
    }

    /// Whether something is mounted on a node, by whatever name.
    fn is_busy(&self, prediction: &Prediction, place: Place) -> bool {
        self.world.is_mount(place)
            || self.world.is_mounted_on(place.node)
            || prediction.effects.pinned.contains(&place.node)
    }

    fn looks(&self, places: &[Place]) -> BTreeMap<Place, Look> {
        let look = |place: &Place| Some((*place, look(&self.world.path(*place))?));
        places.iter().filter_map(look).collect()
    }

    /// What has changed on the host that must not have; what the command may move, it has moved
    /// there and back.
    fn changes(
        &self,
        prediction: &Prediction,
        before: &BTreeMap<Place, Look>,
        after: &BTreeMap<Place, Look>,
    ) -> Vec<String> {
        let writable = &prediction.effects.writable;
        let in_reach = |node: Node| {
            writable.iter().any(|place| place.node == node)
                || writable
                    .iter()
                    .any(|up| self.world.below(*up).iter().any(|one| one.node == node))
        };
        let same = |(place, old): (&Place, &Look)| {
            let mut new = after.get(place)?.clone();
            if in_reach(place.node) {
                new.times = old.times;
            }
            (new == *old).then_some(())
        };
        let changed = before.iter().filter(|one| same(*one).is_none());
        changed.map(|(place, _)| format!("{} has changed", self.world.path(*place))).collect()
    }
}
