//! All results, as JSON or as tables. Times are microseconds.

use std::fmt;

use serde::Serialize;

use crate::goals::Goal;
use crate::layers::Trace;
use crate::programs::FLOOR;
use crate::stats::{Summary, paired_ratio};
use crate::timing::Samples;

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) runs: u32,
    /// Whether there was a bubblewrap to compare with.
    pub(crate) bwrap: bool,
    pub(crate) programs: Vec<Row>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) big_workspace: BigWorkspace,
    pub(crate) layers: Trace,
}

#[derive(Serialize)]
pub(crate) struct Row {
    name: &'static str,
    microseconds: Summary,
    /// Median of the ratios to the floor, round by round.
    by_floor: f64,
}

#[derive(Serialize)]
pub(crate) struct BigWorkspace {
    files: u32,
    empty_microseconds: Summary,
    big_microseconds: Summary,
    ratio: f64,
}

pub(crate) fn rows(samples: &[Samples]) -> Vec<Row> {
    let floor = samples.iter().find(|samples| samples.name == FLOOR);
    let floor = floor.map_or(&[][..], |floor| &floor.microseconds);
    samples
        .iter()
        .map(|Samples { name, microseconds }| Row {
            name,
            microseconds: Summary::of(microseconds),
            by_floor: paired_ratio(microseconds, floor),
        })
        .collect()
}

impl BigWorkspace {
    pub(crate) fn new(files: u32, empty: &Samples, big: &Samples) -> Self {
        Self {
            files,
            empty_microseconds: Summary::of(&empty.microseconds),
            big_microseconds: Summary::of(&big.microseconds),
            ratio: paired_ratio(&big.microseconds, &empty.microseconds),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "start-up, µs, {} interleaved runs each", self.runs)?;
        head(f, "÷ floor")?;
        for Row { name, microseconds, by_floor } in &self.programs {
            row(f, name, microseconds, *by_floor)?;
        }
        if !self.bwrap {
            writeln!(f, "  bwrap is absent: it is not on PATH")?;
        }

        writeln!(f, "\ngoals")?;
        for Goal { program, by, ratio, at_most, met } in &self.goals {
            let met = if *met { "met" } else { "missed" };
            let pair = format!("{program} ÷ {by}");
            writeln!(f, "  {pair:<34} {ratio:>6.2}  (≤ {at_most:.2}) {met}")?;
        }

        let big = &self.big_workspace;
        writeln!(f, "\nworkspace-write, µs, {} interleaved runs each", self.runs)?;
        head(f, "÷ empty")?;
        row(f, "empty workspace", &big.empty_microseconds, 1.0)?;
        row(f, &format!("{} files", big.files), &big.big_microseconds, big.ratio)?;

        let trace = &self.layers;
        writeln!(f, "\nlayers of workspace-write, µs, median of {} runs", trace.runs)?;
        for layer in &trace.layers {
            cost(f, &layer.layer, &layer.state, layer.microseconds, layer.share)?;
        }
        cost(f, "sum", "", Some(trace.sum_microseconds), Some(trace.sum_share))?;
        cost(f, "whole run", "", Some(trace.run_microseconds), Some(1.0))
    }
}

fn head(f: &mut fmt::Formatter<'_>, ratio: &str) -> fmt::Result {
    writeln!(f, "  {:<24} {:>9} {:>9} {:>9} {ratio:>8}", "", "min", "median", "p95")
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, times: &Summary, ratio: f64) -> fmt::Result {
    let Summary { min, median, p95 } = times;
    writeln!(f, "  {name:<24} {min:>9.0} {median:>9.0} {p95:>9.0} {ratio:>8.2}")
}

fn cost(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    state: &str,
    microseconds: Option<f64>,
    share: Option<f64>,
) -> fmt::Result {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
    let share = share.map(|share| share * 100.0);
    writeln!(f, "  {name:<24} {state:<10} {:>8} {:>5} %", number(microseconds), number(share))
}
