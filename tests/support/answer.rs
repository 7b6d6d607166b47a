//! The probe's line of JSON.

use std::io;

use serde::Deserialize;

/// What became of an attempt.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    /// The errno of the call that was refused.
    pub(crate) errno: Option<String>,
    /// What else the probe has to say.
    pub(crate) detail: Option<String>,
    /// Its calls.
    pub(crate) steps: Vec<Step>,
}

/// One call.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    /// Its name.
    pub(crate) call: String,
}

impl Answer {
    /// Every answer in an output, in its order.
    pub(crate) fn all(output: &str) -> io::Result<Vec<Self>> {
        let lines = output.lines().filter(|line| line.starts_with("{\"attempt\""));
        lines.map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
    }

    /// The last call and its errno, `connect EACCES`, and the detail where there is one.
    pub(crate) fn end(&self) -> String {
        let call = self.steps.last().map_or("", |step| &step.call);
        let errno = self.errno.as_deref().unwrap_or("ok");
        let detail = self.detail.iter().map(|detail| format!(": {detail}"));
        format!("{call} {errno}{}", detail.collect::<String>()).trim_start().to_owned()
    }
}
