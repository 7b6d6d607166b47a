//! The rows: work and what must come of it, as data. A field of work is one file in `rows/`.

use std::collections::BTreeMap;

use dsh_facts::SandboxMode;
use serde::Deserialize;

use crate::support::persona::{Persona, User};

const FIELDS: [(&str, &str); 10] = [
    ("compilers", include_str!("rows/compilers.toml")),
    ("files", include_str!("rows/files.toml")),
    ("git", include_str!("rows/git.toml")),
    ("modes", include_str!("rows/modes.toml")),
    ("node", include_str!("rows/node.toml")),
    ("pip", include_str!("rows/pip.toml")),
    ("processes", include_str!("rows/processes.toml")),
    ("python", include_str!("rows/python.toml")),
    ("rust", include_str!("rows/rust.toml")),
    ("sockets", include_str!("rows/sockets.toml")),
];

/// Reads every field. The files are part of the program, so a mistake in one is a bug: say where.
pub(crate) fn load() -> Vec<Row> {
    let parse = |(name, text)| {
        let field: Field =
            toml::from_str(text).unwrap_or_else(|error| panic!("{name}.toml: {error}"));
        field.rows()
    };
    let rows: Vec<Row> = FIELDS.into_iter().flat_map(parse).collect();
    rows.iter().for_each(Row::check);
    rows
}

/// One file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Comes before the `needs` of every row.
    #[serde(default)]
    needs: Vec<String>,
    /// Comes before the `prepare` of every row.
    #[serde(default)]
    prepare: String,
    row: Vec<Row>,
}

/// A piece of work.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Row {
    /// As part of the test's name.
    pub(crate) name: String,
    /// The field reports that it answers, or whose daily work it is.
    pub(crate) covers: String,
    /// Shell commands, each of which fails where a tool is not installed.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// CI does not install the tools: where they are missing the row is left out, even where
    /// everything must run.
    #[serde(default)]
    pub(crate) optional: bool,
    /// Needs the Rust toolchain.
    #[serde(default)]
    pub(crate) rust: bool,
    /// What hostsim imitates.
    pub(crate) hostsim: Option<Vec<String>>,
    /// Done in the workspace before, outside the sandbox. A text for sh, with `{placeholders}`, as
    /// all that follow.
    #[serde(default)]
    pub(crate) prepare: String,
    /// Arguments of `dsh-run` beside the rung.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Variables of dsh-run's own environment.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// The work: a text for bash, inside the sandbox.
    pub(crate) script: String,
    /// In read-only the work is done on a copy of the workspace in the scratch.
    #[serde(default)]
    pub(crate) copied: bool,
    /// How often dsh-run is started for it, one start after the other.
    #[serde(default = "once")]
    pub(crate) starts: u32,
    /// The last entry that fits a rung and a user is what must happen; without one the work is not
    /// done there.
    pub(crate) expect: Vec<Expectation>,
}

fn once() -> u32 {
    1
}

/// What must happen.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    /// The rung it holds for; none is every confined one.
    pub(crate) rung: Option<SandboxMode>,
    /// The user it holds for; none is both.
    pub(crate) uid: Option<User>,
    /// The exit status. Without one it is 0, but not 0 and not dsh-run's own where there is an errno.
    pub(crate) status: Option<i32>,
    /// All that the work prints to its standard output.
    pub(crate) stdout: Option<String>,
    /// A part of what it prints, to either output.
    pub(crate) says: Option<String>,
    /// The errno by which the mode stops the work.
    pub(crate) errno: Option<String>,
    /// Arguments of `dsh-probe`: makes the call that stops the work, for its errno.
    pub(crate) attempt: Option<Vec<String>>,
    /// Why it is right that the work cannot be done.
    pub(crate) contract: Option<String>,
    /// Looks at what is left, outside the sandbox. A text for sh that fails where something is
    /// wrong.
    pub(crate) after: Option<String>,
}

impl Field {
    fn rows(self) -> Vec<Row> {
        let complete = |row: Row| Row {
            needs: [self.needs.clone(), row.needs].concat(),
            prepare: format!("{}\n{}", self.prepare, row.prepare),
            ..row
        };
        self.row.into_iter().map(complete).collect()
    }
}

impl Row {
    /// What must happen on this rung for this user.
    pub(crate) fn expectation(&self, rung: SandboxMode, persona: Persona) -> Option<&Expectation> {
        self.expect.iter().rev().find(|expectation| {
            expectation.uid.is_none_or(|only| only.is(persona))
                && expectation.rung.map_or(rung.confines(), |only| only == rung)
        })
    }

    /// A table that contradicts itself tests nothing.
    fn check(&self) {
        for Expectation { status, errno, attempt, contract, .. } in &self.expect {
            let name = &self.name;
            let fails = errno.is_some() || status.is_some_and(|status| status != 0);
            assert_eq!(
                fails,
                contract.is_some(),
                "{name}: a failure, and only one, has its reason"
            );
            assert_eq!(errno.is_some(), attempt.is_some(), "{name}: an errno needs its attempt");
            assert_ne!((errno.is_some(), *status), (true, Some(0)), "{name}: stopped, or not?");
        }
        assert!(!self.expect.is_empty() && !self.covers.is_empty(), "{}: incomplete", self.name);
    }
}

impl Expectation {
    /// As the table of results has it.
    pub(crate) fn outcome(&self) -> String {
        match (&self.errno, self.status) {
            (Some(errno), _) => errno.clone(),
            (None, None | Some(0)) => "works".to_owned(),
            (None, Some(status)) => format!("exit {status}"),
        }
    }
}
