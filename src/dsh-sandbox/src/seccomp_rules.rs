//! The table of refused system calls, and what of it a run needs.

use serde::{Deserialize, Serialize};

use crate::syscalls::{Lookup, lookup};

/// The table as `sandbox-profiles/syscalls.toml` states it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    #[serde(rename = "rule")]
    rules: Vec<Rule>,
}

/// One rule: these calls, under these conditions, are answered with this errno.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// The reason, for whoever reads the file or `explain`.
    pub(crate) why: String,
    /// Kernel names of the calls.
    calls: Vec<Call>,
    /// The errno that answers.
    pub(crate) errno: Refusal,
    /// The situation in which the rule is needed; always when absent.
    only: Option<Situation>,
    /// Whether the kernel lets only an administrator do it, so that nobody else is denied anything.
    #[serde(default)]
    pub(crate) privileged: bool,
    /// Alternatives, each a list of conditions that must all hold; any call when empty.
    #[serde(default)]
    pub(crate) when: Vec<Alternative>,
}

/// The name of a call, checked when the table is read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Call {
    name: String,
    /// Its number; none on an architecture that lacks it.
    pub(crate) number: Option<u32>,
}

impl TryFrom<String> for Call {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match lookup(&name) {
            Lookup::Number(number) => Ok(Self { name, number: Some(number) }),
            Lookup::Elsewhere => Ok(Self { name, number: None }),
            Lookup::Unknown => Err(format!("there is no system call '{name}'")),
        }
    }
}

/// The errnos that a rule may answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Refusal {
    /// As on a kernel without the call, so that programs use another.
    #[serde(rename = "ENOSYS")]
    Enosys,
    /// The policy's plain no.
    #[serde(rename = "EPERM")]
    Eperm,
    /// As for a socket that the caller may not make.
    #[serde(rename = "EACCES")]
    Eacces,
    /// As on a kernel without the socket family.
    #[serde(rename = "EAFNOSUPPORT")]
    Eafnosupport,
    /// As for a protocol that the family lacks.
    #[serde(rename = "EPROTONOSUPPORT")]
    Eprotonosupport,
    /// As for a socket type that the family lacks.
    #[serde(rename = "ESOCKTNOSUPPORT")]
    Esocktnosupport,
}

impl Rule {
    /// The names of the calls that this architecture has.
    pub(crate) fn names(&self) -> Vec<String> {
        let here = self.calls.iter().filter(|call| call.number.is_some());
        here.map(|call| call.name.clone()).collect()
    }
}

impl Refusal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Eperm => "EPERM",
            Self::Eacces => "EACCES",
            Self::Enosys => "ENOSYS",
            Self::Eafnosupport => "EAFNOSUPPORT",
            Self::Eprotonosupport => "EPROTONOSUPPORT",
            Self::Esocktnosupport => "ESOCKTNOSUPPORT",
        }
    }

    pub(crate) fn errno(self) -> u32 {
        let errno = match self {
            Self::Eperm => libc::EPERM,
            Self::Eacces => libc::EACCES,
            Self::Enosys => libc::ENOSYS,
            Self::Eafnosupport => libc::EAFNOSUPPORT,
            Self::Eprotonosupport => libc::EPROTONOSUPPORT,
            Self::Esocktnosupport => libc::ESOCKTNOSUPPORT,
        };
        errno.unsigned_abs()
    }
}

/// What about a run can make a rule needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Situation {
    /// The caller's user id is 0.
    RootCaller,
    /// pid 1 of the command's namespace is the sandbox's own init.
    OwnInit,
    /// The command has no pid namespace: the sandbox's own init is one of the host's processes.
    HostPids,
    /// No `max_user_namespaces` of ours keeps new namespaces out.
    NamespacesLockedByFilter,
    /// The network is off and no namespace makes it so.
    NetworkOffByFilter,
    /// Nothing may be written and no read-only mount refuses metadata.
    MetadataRefused,
    /// Metadata of what lies below a writable root are changed by the observer, and of nothing else.
    MetadataPerformed,
    /// One of the two.
    MetadataGoverned,
    /// Nothing decides which unix sockets may be reached.
    UnixSocketsRefused,
}

/// Conditions that must all hold; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Condition>")]
pub struct Alternative(pub(crate) Vec<Condition>);

impl Alternative {
    /// Whether a call with these arguments is meant.
    pub(crate) fn holds(&self, arguments: &[u64; 6]) -> bool {
        self.0.iter().all(|condition| condition.holds(arguments))
    }
}

impl TryFrom<Vec<Condition>> for Alternative {
    type Error = &'static str;

    fn try_from(conditions: Vec<Condition>) -> Result<Self, &'static str> {
        if conditions.is_empty() {
            return Err("an alternative without conditions: leave `when` out to refuse every call");
        }
        Ok(Self(conditions))
    }
}

/// A comparison of one argument, as written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCondition {
    arg: u8,
    mask: Option<u64>,
    is: Option<u64>,
    not: Option<u64>,
    #[serde(default)]
    wide: bool,
}

impl TryFrom<WrittenCondition> for Condition {
    type Error = &'static str;

    fn try_from(written: WrittenCondition) -> Result<Self, &'static str> {
        let WrittenCondition { arg, mask, is, not, wide } = written;
        if arg > 5 {
            return Err("a system call has arguments 0 to 5");
        }
        let comparison = match (is, not, mask) {
            (Some(value), None, mask) => Comparison::Is { value, mask },
            (None, Some(value), None) => Comparison::Not(value),
            _ => return Err("a condition needs `is`, with or without `mask`, or `not`"),
        };
        Ok(Self { arg, comparison, wide })
    }
}

impl From<Condition> for WrittenCondition {
    fn from(condition: Condition) -> Self {
        let Condition { arg, comparison, wide } = condition;
        let (is, not, mask) = match comparison {
            Comparison::Is { value, mask } => (Some(value), None, mask),
            Comparison::Not(value) => (None, Some(value), None),
        };
        Self { arg, mask, is, not, wide }
    }
}

/// A comparison of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCondition", into = "WrittenCondition")]
pub(crate) struct Condition {
    /// 0 to 5.
    pub(crate) arg: u8,
    /// What is asked of it.
    pub(crate) comparison: Comparison,
    /// Compare all 64 bits.
    pub(crate) wide: bool,
}

impl Condition {
    fn holds(&self, arguments: &[u64; 6]) -> bool {
        let argument = arguments.get(usize::from(self.arg)).copied().unwrap_or(0);
        let argument = if self.wide { argument } else { argument & 0xffff_ffff };
        match self.comparison {
            Comparison::Is { value, mask } => argument & mask.unwrap_or(u64::MAX) == value,
            Comparison::Not(value) => argument != value,
        }
    }
}

/// What is asked of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// That it, or these bits of it, have this value.
    Is { value: u64, mask: Option<u64> },
    /// That it has not.
    Not(u64),
}

/// One call of one rule that a run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected<'a> {
    /// The call.
    pub(crate) number: u32,
    /// The rule that refuses it.
    pub(crate) rule: &'a Rule,
}

impl Rules {
    /// The table with more rules behind it.
    pub(crate) fn and(mut self, more: &[Rule]) -> Self {
        self.rules.extend_from_slice(more);
        self
    }

    /// The rules that a run in these situations needs.
    pub(crate) fn in_force<'a>(
        &'a self,
        situations: &'a [Situation],
    ) -> impl Iterator<Item = &'a Rule> {
        self.rules
            .iter()
            .filter(|rule| rule.only.is_none_or(|situation| situations.contains(&situation)))
    }

    /// The same, one call each.
    pub(crate) fn select<'a>(
        &'a self,
        situations: &'a [Situation],
    ) -> impl Iterator<Item = Selected<'a>> {
        self.in_force(situations).flat_map(|rule| {
            rule.calls
                .iter()
                .filter_map(|call| call.number)
                .map(move |number| Selected { number, rule })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_misspelt_call_is_refused_by_name() {
        let error = parse("[[rule]]\nwhy='x'\nerrno='EPERM'\ncalls=['mout']").expect_err("a typo");
        assert!(error.message().contains("'mout'"), "{error}");
    }

    #[test]
    fn a_rule_without_a_reason_is_refused() {
        let error = parse("[[rule]]\nerrno='EPERM'\ncalls=['mount']").expect_err("no why");
        assert!(error.message().contains("why"), "{error}");
    }

    #[test]
    fn a_condition_that_compares_nothing_is_refused() {
        for condition in ["", ", mask=1", ", is=1, not=1", ", not=1, mask=1"] {
            let rule = "[[rule]]\nwhy='x'\nerrno='EPERM'\ncalls=['mount']\nwhen=";
            let error = parse(&format!("{rule}[[{{ arg=0{condition} }}]]")).expect_err("nothing");
            assert!(error.message().contains("needs `is`"), "{condition}: {error}");
        }
    }

    #[test]
    fn a_rule_for_a_situation_is_selected_only_in_it() {
        let rules = parse(
            "[[rule]]\nwhy='x'\nerrno='EPERM'\ncalls=['mount']\n\
             [[rule]]\nwhy='y'\nerrno='EPERM'\ncalls=['fchmod']\nonly='root-caller'",
        )
        .expect("a table");
        assert_eq!(rules.select(&[]).count(), 1);
        assert_eq!(rules.select(&[Situation::RootCaller]).count(), 2);
    }
}
