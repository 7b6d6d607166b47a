//! A profile as its file states it, and where in the file something stands.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use dsh_facts::Network;
use serde::Deserialize;
use toml::Spanned;

use super::ProfileError;
use super::path::ProfilePath;
use crate::scratch_size::ScratchSize;
use crate::seccomp_rules::Rule;

/// One file. Nothing in it is resolved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    /// The profile or rung that this one narrows.
    pub(super) extends: Spanned<String>,
    /// What it is for, for people.
    pub(super) description: Option<String>,
    /// The network.
    pub(super) network: Option<Spanned<Network>>,
    /// More directories that may be written, where they exist.
    #[serde(default)]
    pub(super) writable: Vec<Spanned<ProfilePath>>,
    /// Unix sockets that the command may connect to, where they exist.
    #[serde(default)]
    pub(super) sockets: Vec<Spanned<ProfilePath>>,
    /// What the command cannot read.
    #[serde(default)]
    pub(super) hidden: Vec<Spanned<ProfilePath>>,
    /// What of a writable root stays read-only.
    #[serde(default)]
    pub(super) protected: Vec<Spanned<ProfilePath>>,
    /// The most processes and threads.
    pub(super) pids: Option<Spanned<Pids>>,
    /// The size of the scratch.
    pub(super) scratch_size: Option<Spanned<ScratchSize>>,
    /// The command's environment.
    #[serde(default)]
    pub(super) environment: EnvironmentTable,
    /// More system calls to refuse.
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<Spanned<Rule>>,
}

/// A number of processes and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "u32")]
pub(super) struct Pids(pub(super) u32);

impl TryFrom<u32> for Pids {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Self, &'static str> {
        // What `kernel.pid_max` can be at most.
        if (1..=4_194_304).contains(&number) { Ok(Self(number)) } else { Err("use 1 to 4194304") }
    }
}

impl fmt::Display for Pids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `[environment]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvironmentTable {
    /// Start from nothing.
    pub(super) clear: Option<Spanned<bool>>,
    /// Names to keep although they look like credentials.
    #[serde(default)]
    pub(super) pass: Vec<Spanned<Name>>,
    /// Names to withhold.
    #[serde(default)]
    pub(super) drop: Vec<Name>,
    /// Variables to set.
    #[serde(default)]
    pub(super) set: BTreeMap<Name, Value>,
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Name(pub(super) String);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, &'static str> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err("a variable's name is not empty and holds neither = nor NUL");
        }
        Ok(Self(name))
    }
}

/// The value of an environment variable.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Value(pub(super) String);

impl TryFrom<String> for Value {
    type Error = &'static str;

    fn try_from(value: String) -> Result<Self, &'static str> {
        if value.contains('\0') { Err("a variable's value holds no NUL") } else { Ok(Self(value)) }
    }
}

/// Where a profile's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The file, or the name of a built-in profile in angle brackets.
    pub(super) path: PathBuf,
    /// Its text.
    pub(super) text: String,
    /// The file's device and inode; none of what comes with the library.
    pub(super) file: Option<(u64, u64)>,
}

/// A place in a profile, for people: `FILE:LINE:COLUMN`, both from 1, the column in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

impl Source {
    /// Whether both are one file, by whatever names.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.path == other.path || (self.file.is_some() && self.file == other.file)
    }

    pub(super) fn parse(&self) -> Result<ProfileFile, ProfileError> {
        toml::from_str(&self.text).map_err(|error| ProfileError::Syntax {
            place: self.place(error.span().unwrap_or_default()),
            message: error.message().replace('\n', ": "),
        })
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            path: self.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let source = Source { path: "x.toml".into(), text: text.to_owned(), file: None };
        source.parse().expect_err("refused").to_string()
    }

    #[test]
    fn an_unknown_key_is_told_with_its_place() {
        let message = error("extends = \"read-only\"\nnetwrk = \"off\"\n");
        assert!(message.starts_with("x.toml:2:1: unknown field `netwrk`"), "{message}");
        assert!(message.contains("`network`"), "{message}");
    }

    #[test]
    fn a_bad_value_is_told_with_its_place() {
        let head = "extends = \"read-only\"\n";
        for (line, place) in [
            ("pids = 0", "x.toml:2:8"),
            ("network = \"lan\"", "x.toml:2:11"),
            ("scratch_size = \"big\"", "x.toml:2:16"),
            ("hidden = [\"a\", \"~b\"]", "x.toml:2:10: '~b': "),
            ("environment.set = { \"A=B\" = \"c\" }", "x.toml:2:21"),
            ("environment.dorp = []", "x.toml:2:13"),
            ("rule = [{ calls = [\"mout\"], errno = \"EPERM\", why = \"x\" }]", "x.toml:2:19"),
            ("rule = [{ calls = [\"mount\"], errno = \"EPERM\" }]", "x.toml:2:9"),
        ] {
            let message = error(&format!("{head}{line}\n"));
            assert!(message.starts_with(place), "{line}: {message}");
        }
        assert!(error("network = \"off\"\n").contains("extends"));
    }
}
