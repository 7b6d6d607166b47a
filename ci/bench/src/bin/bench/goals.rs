//! What dsh-run is meant to cost, in ratios, which travel better between machines than times.

use serde::Serialize;

use crate::programs::{BWRAP, FLOOR, READ_ONLY, WORKSPACE_WRITE};
use crate::stats::paired_ratio;
use crate::timing::Samples;

const GOALS: [(&str, f64); 2] = [(BWRAP, 0.60), (FLOOR, 1.50)];

#[derive(Serialize)]
pub(crate) struct Goal {
    pub(crate) program: &'static str,
    pub(crate) by: &'static str,
    pub(crate) ratio: f64,
    pub(crate) at_most: f64,
    pub(crate) met: bool,
}

/// Both rungs against each goal whose yardstick was there to be timed.
pub(crate) fn judge(samples: &[Samples]) -> Vec<Goal> {
    let times = |name| samples.iter().find(|samples| samples.name == name);
    let mut goals = Vec::new();
    for (by, at_most) in GOALS {
        for program in [READ_ONLY, WORKSPACE_WRITE] {
            if let (Some(ours), Some(theirs)) = (times(program), times(by)) {
                let ratio = paired_ratio(&ours.microseconds, &theirs.microseconds);
                goals.push(Goal { program, by, ratio, at_most, met: ratio <= at_most });
            }
        }
    }
    goals
}
