//! The denials that the two runs make certain, and those that the facts list.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dsh_facts::{Access, Denial, Layer, SandboxMode};

use crate::draw::Drawn;
use crate::exceptions::{Failure, Listing, Tally, exception, is_refused};
use crate::ground::{Ground, Part};
use crate::run::{Answer, Both};
use crate::scene::{Kind, Node, parent};
use crate::script::Call;
use crate::spelled::spell;

/// What distinguishes one denial from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) operation: String,
    pub(crate) is_write: bool,
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) errno: String,
    pub(crate) layer: String,
}

/// One operation with what became of it.
pub(crate) struct Made<'a> {
    pub(crate) drawn: &'a Drawn,
    pub(crate) inside: &'a Answer,
    pub(crate) outside: &'a Answer,
}

impl<'a> Made<'a> {
    /// What it names, as far as it is in the trees.
    fn nodes(&self) -> Vec<Option<&'a Node>> {
        let named = |place: &Option<Vec<u8>>| {
            let place = place.as_ref()?;
            self.drawn.scene.nodes.iter().find(|node| node.path == *place)
        };
        self.outside.places.iter().map(named).collect()
    }
}

/// How often a denial is to be listed, and for which operations.
#[derive(Default)]
struct Expected<'a> {
    least: u64,
    most: u64,
    drawn: Vec<&'a Drawn>,
    /// Why it may be listed more often than it must be.
    why: Option<&'static str>,
}

/// Compares the runs of one batch.
pub(crate) struct Comparison<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) mode: SandboxMode,
    pub(crate) drawn: &'a [Drawn],
    pub(crate) both: &'a Both,
}

impl Comparison<'_> {
    /// One text for each disagreement; the tally grows by what there was.
    pub(crate) fn disagreements(&self, tally: &mut Tally) -> Vec<String> {
        let Both { inside, outside, facts, changes } = self.both;
        let mut found: Vec<String> =
            changes.iter().map(|change| format!("the host was changed: {change}")).collect();
        if [inside.len(), outside.len()] != [self.drawn.len(); 2] {
            let (inside, outside) = (inside.len(), outside.len());
            found.push(format!("{} operations, {inside} and {outside} answers", self.drawn.len()));
        }
        if facts.denials_dropped != 0 {
            found.push(format!("{} denials were dropped", facts.denials_dropped));
        }
        let mut expected: BTreeMap<Key, Expected<'_>> = BTreeMap::new();
        for ((drawn, inside), outside) in self.drawn.iter().zip(inside).zip(outside) {
            let made = Made { drawn, inside, outside };
            tally.operations += 1;
            for (inside, outside) in made.inside.results.iter().zip(&made.outside.results) {
                let unprepared = inside.contains(':') || outside.contains(':');
                if (inside == "ok" && outside != "ok") || (unprepared && inside != outside) {
                    found.push(format!("better inside: {}", self.describe(&made)));
                }
                if inside == "ok" || unprepared {
                    continue;
                }
                let nodes = made.nodes();
                let exception = exception(&Failure { drawn, inside, outside, nodes });
                let (least, most) = match exception {
                    Some((_, Listing::Unlisted)) => (0, 0),
                    Some((_, Listing::Open)) => (0, 1),
                    None if outside == "ok" => (1, 1),
                    None => (0, 0),
                };
                match exception {
                    Some((_, Listing::Open)) => {}
                    Some((why, _)) => tally.except(why, 1),
                    None => tally.denials += least,
                }
                if most > 0 {
                    let entry = expected.entry(self.key(&made, inside)).or_default();
                    entry.least += least;
                    entry.most += most;
                    entry.drawn.push(drawn);
                    entry.why = entry.why.or(exception.map(|(why, _)| why));
                }
            }
        }
        let mut listed: BTreeMap<Key, u64> = BTreeMap::new();
        for denial in &facts.denials {
            *listed.entry(listed_key(denial)).or_default() += denial.count;
            if denial.program != "dsh-probe" {
                found.push(format!("a program {:?}", denial.program));
            }
        }
        for (key, Expected { least, most, drawn, why }) in &expected {
            let got = listed.get(key).copied().unwrap_or(0);
            if let Some(why) = why.filter(|_| got > *least) {
                tally.except(why, got - least);
            }
            if got < *least || got > *most {
                let mut text = format!("certain {least} times, listed {got}: {}", tell(key));
                drawn.iter().for_each(|one| text += &self.describe_number(one.number));
                found.push(text);
            }
        }
        for (key, got) in listed.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            let number = key.path.as_ref().and_then(|path| self.ground.number_of(path));
            let about = number.map(|number| self.describe_number(number)).unwrap_or_default();
            found.push(format!("certainly not, listed {got} times: {}{about}", tell(key)));
        }
        found
    }

    /// The denial that the operation makes certain.
    fn key(&self, made: &Made<'_>, errno: &str) -> Key {
        let Call { operation, .. } = &made.drawn.line.call;
        let place = |index: usize| made.outside.places.get(index).cloned().flatten();
        // A rename is wrong where a name cannot be taken away, else where it cannot be put; a link
        // where it cannot be put.
        let path = match *operation {
            "rename" if self.is_writable(place(0)) => place(1),
            "link" => place(1),
            _ => place(0),
        };
        let is_device = |path: &Vec<u8>| {
            let nodes = &made.drawn.scene.nodes;
            nodes.iter().any(|node| node.path == *path && node.kind == Kind::Device)
        };
        let (errno, operation) = (errno.to_owned(), (*operation).to_owned());
        if is_refused(made.drawn) && errno == "EPERM" {
            // Where it leads is not looked up, and so told as it is.
            let layer = "seccomp".to_owned();
            return Key { operation, is_write: false, path: None, errno, layer };
        }
        let layer = match errno.as_str() {
            "EROFS" | "EXDEV" => "mount",
            "EACCES" if path.as_ref().is_some_and(is_device) => "mount",
            "EACCES" => "landlock",
            _ => "unknown",
        };
        let path = path.map(without_number);
        Key { operation, is_write: true, path, errno, layer: layer.to_owned() }
    }

    /// Whether a name may be taken from the directory that holds it.
    fn is_writable(&self, path: Option<Vec<u8>>) -> bool {
        let part = path.and_then(|path| self.ground.part_of(parent(&path)));
        self.mode == SandboxMode::WorkspaceWrite && matches!(part, Some(Part::Work | Part::Second))
    }

    fn describe_number(&self, number: u64) -> String {
        let index = self.drawn.iter().position(|one| one.number == number);
        let made = index.and_then(|index| {
            let drawn = &self.drawn[index];
            let (inside, outside) = (self.both.inside.get(index)?, self.both.outside.get(index)?);
            Some(Made { drawn, inside, outside })
        });
        made.map(|made| self.describe(&made)).unwrap_or_default()
    }

    fn describe(&self, made: &Made<'_>) -> String {
        let Made { drawn, inside, outside } = made;
        let mut text = format!("\n  {}: {}", drawn.number, drawn.line);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n    inside {}, outside {}",
            inside.results.join(","),
            outside.results.join(",")
        );
        for place in outside.places.iter().flatten() {
            let _ = write!(text, "\n    names {}", spell(place));
            if let Some(node) = drawn.scene.nodes.iter().find(|node| node.path == *place) {
                let _ = write!(text, " {:?} {:o} {:?}", node.kind, node.mode, node.owner);
            }
        }
        text
    }
}

fn listed_key(denial: &Denial) -> Key {
    let path = match (&denial.path_base64, &denial.path) {
        (Some(bytes), _) => Some(base64(bytes)),
        (None, path) => path.as_ref().map(|path| path.clone().into_bytes()),
    };
    let is_refused = denial.layer == Layer::Seccomp;
    let layer = serde_json::json!(denial.layer);
    Key {
        operation: denial.operation.clone(),
        is_write: denial.access == Some(Access::Write) && !is_refused,
        path: path.map(without_number).filter(|_| !is_refused),
        errno: denial.errno.clone(),
        layer: layer.as_str().unwrap_or_default().to_owned(),
    }
}

/// A path in the directory of a process, without its number: that differs inside and outside.
fn without_number(path: Vec<u8>) -> Vec<u8> {
    let below = path.strip_prefix(b"/proc/").unwrap_or_default();
    let digits = below.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { path } else { [b"/proc/self", &below[digits..]].concat() }
}

fn tell(key: &Key) -> String {
    let path = key.path.as_ref().map_or("no path".to_owned(), |path| spell(path));
    let access = if key.is_write { "write" } else { "no access" };
    format!("{} {access} {path} {} {}", key.operation, key.errno, key.layer)
}

/// What base64 text stands for.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let mut bits = 0_u32;
    let mut known = 0;
    for digit in text.bytes() {
        let Some(value) = DIGITS.iter().position(|one| *one == digit) else { break };
        bits = (bits << 6) | u32::try_from(value).unwrap_or_default();
        known += 6;
        if known >= 8 {
            known -= 8;
            bytes.push(u8::try_from((bits >> known) & 0xff).unwrap_or_default());
        }
    }
    bytes
}
