//! What an attempt leaves behind: its calls, in order, each with the errno that the kernel gave.

use nix::errno::Errno;
use serde::Serialize;

/// A name on the command line and the function behind it.
pub(crate) type Attempt = (&'static str, fn(&mut Trail, &[String]) -> Outcome);

/// An attempt runs until its first refused call.
pub(crate) type Outcome = Result<(), Stop>;

/// Why an attempt ended early.
pub(crate) enum Stop {
    /// The kernel refused a call; the trail already holds it.
    Refused,
    /// The suite called the attempt wrongly.
    Misuse(String),
}

/// The record of one attempt, printed as one line of JSON.
#[derive(Serialize)]
pub(crate) struct Trail {
    attempt: &'static str,
    errno: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    call: &'static str,
    errno: Option<String>,
}

impl Trail {
    pub(crate) fn new(attempt: &'static str) -> Self {
        Self { attempt, errno: None, detail: None, steps: Vec::new() }
    }

    /// Records one call; a refused one ends the attempt and is its errno.
    pub(crate) fn step<T>(
        &mut self,
        call: &'static str,
        result: Result<T, Errno>,
    ) -> Result<T, Stop> {
        // `Errno`'s Debug form is the symbolic name, "EROFS".
        let errno = result.as_ref().err().map(|errno| format!("{errno:?}"));
        self.steps.push(Step { call, errno: errno.clone() });
        self.errno = errno;
        result.map_err(|_| Stop::Refused)
    }

    /// Something the suite may compare beside the errno.
    pub(crate) fn detail(&mut self, detail: impl Into<String>) {
        self.detail = Some(detail.into());
    }

    pub(crate) fn into_json(self) -> String {
        serde_json::json!(self).to_string()
    }
}
