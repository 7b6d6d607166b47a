//! Profiles: a caller's own policy as a file. Each narrows what it extends, down from a rung.

mod file;
mod find;
mod path;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};

use dsh_facts::{Network, SandboxMode};
use toml::Spanned;

use crate::error::errno_text;
use crate::rung::Rung;
use crate::scratch_size::ScratchSize;
use crate::seccomp_rules::Rule;
use file::{ProfileFile, Source};

pub use file::Place;
pub use find::{profile_directory, profile_names};
pub(crate) use path::ProfilePath;

/// A profile with all that it extends.
///
/// Its rung and each value that it states are a ceiling: neither a profile that extends it nor a
/// request that uses it can go beyond. What no profile states is the rung's default.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The name or path that was asked for.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// What it extends, nearest first; the last is the rung.
    pub(crate) extends: Vec<String>,
    /// Its files, which govern the run.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) mode: SandboxMode,
    pub(crate) network: Option<Network>,
    pub(crate) pids: Option<u32>,
    pub(crate) scratch_size: Option<ScratchSize>,
    pub(crate) writable: Vec<ProfilePath>,
    pub(crate) sockets: Vec<ProfilePath>,
    pub(crate) hidden: Vec<ProfilePath>,
    pub(crate) protected: Vec<ProfilePath>,
    pub(crate) clear_environment: bool,
    pub(crate) pass: BTreeSet<String>,
    pub(crate) drop: BTreeSet<String>,
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) rules: Vec<Rule>,
}

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No profile has the name.
    #[error(
        "there is no profile '{name}': dsh-run profiles lists them, and a file is named by its path"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// A file that cannot be read.
    #[error("profile {}: {}: name a file that can be read", path.display(), errno_text(*errno))]
    Read {
        /// The file.
        path: PathBuf,
        /// The errno of reading it.
        errno: i32,
    },
    /// A directory, a pipe, a device.
    #[error("profile {}: not a regular file: name a file that can be read", path.display())]
    NotAFile {
        /// What it is not.
        path: PathBuf,
    },
    /// A file that nobody wrote as a profile.
    #[error("profile {}: larger than 1 MiB, which no profile is", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not text.
    #[error("profile {}: it is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// Text that is no profile: not TOML, an unknown key, a value of the wrong kind.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What is wrong.
        message: String,
    },
    /// A profile that extends itself.
    #[error("{place}: {} is a circle: a profile extends, in the end, a rung", chain.join(" extends "))]
    Cycle {
        /// Where the circle closes.
        place: Place,
        /// The profiles on the way.
        chain: Vec<String>,
    },
    /// A profile that gives more than what it extends.
    #[error(
        "{place}: {key} goes beyond {base}, which {allows}: a profile can only narrow what it extends"
    )]
    Widening {
        /// Where.
        place: Place,
        /// The key and its value.
        key: String,
        /// What is extended.
        base: String,
        /// What that allows.
        allows: String,
    },
}

impl ProfileError {
    fn is_absence(&self) -> bool {
        matches!(self, Self::Read { errno, .. } if *errno == nix::errno::Errno::ENOENT as i32)
    }
}

impl Profile {
    /// Loads a profile: the path of a file (with a slash, or ending in `.toml`), the name of a rung
    /// or another built-in profile, or the name of one in [`profile_directory`].
    ///
    /// # Errors
    ///
    /// Any [`ProfileError`].
    pub fn load(wanted: &str) -> Result<Self, ProfileError> {
        let mut levels: Vec<(Source, ProfileFile)> = Vec::new();
        let mut names = vec![wanted.to_owned()];
        let mut directory = PathBuf::new();
        let mode = loop {
            let name = &names[names.len() - 1];
            if let Ok(mode) = name.parse::<SandboxMode>() {
                break mode;
            }
            let source = find::source(name, &directory)?;
            if levels.iter().any(|(known, _)| known.is(&source)) {
                let (last, file) = &levels[levels.len() - 1];
                let place = last.place(file.extends.span());
                return Err(ProfileError::Cycle { place, chain: names });
            }
            let file = source.parse()?;
            directory = source.path.parent().unwrap_or(Path::new("")).to_owned();
            names.push(file.extends.get_ref().clone());
            levels.push((source, file));
        };
        let mut profile = Self::rung(mode);
        while let Some((source, file)) = levels.pop() {
            let base = names.pop().unwrap_or_default();
            profile = profile.narrowed(&base, &source, file)?;
        }
        profile.name = wanted.to_owned();
        Ok(profile)
    }

    /// What it is for, in its own words.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Why no variable of this name can be passed where the profile holds; none where it can.
    pub(crate) fn keeps_back(&self, name: &str) -> Option<&'static str> {
        if self.drop.contains(name) {
            return Some("withholds it");
        }
        (self.clear_environment && !self.pass.contains(name)).then_some("clears the environment")
    }

    /// A rung, which states nothing beyond its mode.
    fn rung(mode: SandboxMode) -> Self {
        Self {
            name: mode.to_string(),
            description: Rung::of(mode).ok().map(|rung| rung.description),
            extends: Vec::new(),
            files: Vec::new(),
            mode,
            network: None,
            pids: None,
            scratch_size: None,
            writable: Vec::new(),
            sockets: Vec::new(),
            hidden: Vec::new(),
            protected: Vec::new(),
            clear_environment: false,
            pass: BTreeSet::new(),
            drop: BTreeSet::new(),
            set: BTreeMap::new(),
            rules: Vec::new(),
        }
    }

    /// The profile with one more level on top.
    fn narrowed(
        mut self,
        base: &str,
        source: &Source,
        file: ProfileFile,
    ) -> Result<Self, ProfileError> {
        let level = Level { base, source };
        level.check_against_rung(self.mode, &file)?;
        self.network = level.narrower("network", self.network, file.network)?;
        let pids = file.pids.map(|pids| Spanned::new(pids.span(), pids.into_inner().0));
        self.pids = level.narrower("pids", self.pids, pids)?;
        self.scratch_size = level.narrower("scratch_size", self.scratch_size, file.scratch_size)?;
        self.writable.extend(file.writable.into_iter().map(Spanned::into_inner));
        self.sockets.extend(file.sockets.into_iter().map(Spanned::into_inner));
        self.hidden.extend(file.hidden.into_iter().map(Spanned::into_inner));
        self.protected.extend(file.protected.into_iter().map(Spanned::into_inner));
        self.rules.extend(file.rules.into_iter().map(Spanned::into_inner));
        let environment = file.environment;
        let clear = environment.clear.as_ref().is_some_and(|clear| *clear.get_ref());
        if let Some(stated) = environment.clear.filter(|_| self.clear_environment && !clear) {
            return Err(level.widens(stated.span(), "clear = false", "clears the environment"));
        }
        for name in &environment.pass {
            if let Some(allows) = self.keeps_back(&name.get_ref().0) {
                let key = format!("pass = {}", name.get_ref().0);
                return Err(level.widens(name.span(), &key, allows));
            }
        }
        self.clear_environment |= clear;
        self.pass.extend(environment.pass.into_iter().map(|name| name.into_inner().0));
        self.drop.extend(environment.drop.into_iter().map(|name| name.0));
        self.pass.retain(|name| !self.drop.contains(name));
        self.set.extend(environment.set.into_iter().map(|(name, value)| (name.0, value.0)));
        self.description = file.description;
        self.extends.insert(0, base.to_owned());
        if source.file.is_some() {
            self.files.push(source.path.clone());
        }
        Ok(self)
    }
}

/// One step of a chain: a file on top of what it extends.
struct Level<'a> {
    base: &'a str,
    source: &'a Source,
}

impl Level<'_> {
    fn widens(&self, span: std::ops::Range<usize>, key: &str, allows: &str) -> ProfileError {
        ProfileError::Widening {
            place: self.source.place(span),
            key: key.to_owned(),
            base: self.base.to_owned(),
            allows: allows.to_owned(),
        }
    }

    /// The narrower of two values, of which the upper level's must be it.
    fn narrower<T: PartialOrd + Display + Copy>(
        &self,
        key: &str,
        below: Option<T>,
        above: Option<Spanned<T>>,
    ) -> Result<Option<T>, ProfileError> {
        let Some(above) = above else { return Ok(below) };
        let value = *above.get_ref();
        match below {
            Some(allowed) if value > allowed => {
                let key = format!("{key} = {value}");
                Err(self.widens(above.span(), &key, &format!("allows {allowed}")))
            }
            _ => Ok(Some(value)),
        }
    }

    /// What the rung does not know cannot be asked of it.
    fn check_against_rung(
        &self,
        mode: SandboxMode,
        file: &ProfileFile,
    ) -> Result<(), ProfileError> {
        if mode == SandboxMode::ReadOnly
            && let Some(root) = file.writable.first()
        {
            let key = format!("writable = {}", root.get_ref().as_str());
            return Err(self.widens(root.span(), &key, "writes nothing"));
        }
        if mode.confines() {
            return Ok(());
        }
        let confining = [
            ("network", file.network.as_ref().map(Spanned::span)),
            ("pids", file.pids.as_ref().map(Spanned::span)),
            ("scratch_size", file.scratch_size.as_ref().map(Spanned::span)),
            ("writable", file.writable.first().map(Spanned::span)),
            ("sockets", file.sockets.first().map(Spanned::span)),
            ("hidden", file.hidden.first().map(Spanned::span)),
            ("protected", file.protected.first().map(Spanned::span)),
            ("rule", file.rules.first().map(Spanned::span)),
        ];
        match confining.into_iter().find_map(|(key, span)| Some((key, span?))) {
            None => Ok(()),
            Some((key, span)) => Err(ProfileError::Syntax {
                place: self.source.place(span),
                message: format!("danger-full-access confines nothing, so {key} cannot be kept"),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
