//! What a test has found wrong: all of it, not only the first.

use std::fmt::Debug;

use libtest_mimic::{Completion, Failed};

/// Findings, collected while a test looks on.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<String>,
}

impl Problems {
    /// Two values that must be the same.
    pub(crate) fn equal<T: PartialEq + Debug>(&mut self, what: &str, got: T, want: T) {
        if got != want {
            self.found.push(format!("{what}: expected {want:?}, got {got:?}"));
        }
    }

    /// Something that must be true.
    pub(crate) fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.found.push(what());
        }
    }

    /// A text that must have a part.
    pub(crate) fn contains(&mut self, what: &str, text: &str, part: &str) {
        self.check(text.contains(part), || format!("{what}: expected {part:?} in {text:?}"));
    }

    /// The end of the test. The context helps only where something is wrong.
    pub(crate) fn verdict(self, context: &dyn Debug) -> Result<Completion, Failed> {
        if self.found.is_empty() {
            return Ok(Completion::Completed);
        }
        Err(format!("{}\nin {context:?}", self.found.join("\n")).into())
    }
}
