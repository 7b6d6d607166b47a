//! Where the time of a run goes, by dsh-run's own account in its facts.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::args::Args;
use crate::programs;
use crate::stats::median;
use crate::timing;

const RUNS: u32 = 50;

/// As much of the facts as this needs.
#[derive(Deserialize)]
struct Facts {
    enforcement: Enforcement,
}

#[derive(Deserialize)]
struct Enforcement {
    layers: Vec<LayerFact>,
}

#[derive(Deserialize)]
struct LayerFact {
    layer: String,
    state: String,
    /// None for a layer that no time was taken of.
    microseconds: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Trace {
    pub(crate) runs: u32,
    pub(crate) run_microseconds: f64,
    pub(crate) layers: Vec<Layer>,
    pub(crate) sum_microseconds: f64,
    pub(crate) sum_share: f64,
}

#[derive(Serialize)]
pub(crate) struct Layer {
    pub(crate) layer: String,
    pub(crate) state: String,
    /// The median; none where no run gave one.
    pub(crate) microseconds: Option<f64>,
    /// Of the whole run as seen from outside.
    pub(crate) share: Option<f64>,
    #[serde(skip)]
    samples: Vec<f64>,
}

/// Runs dsh-run with its facts in `file`, which must lie outside of the workspace.
pub(crate) fn trace(args: &Args, workspace: &Path, file: &Path) -> Result<Trace> {
    let program = programs::workspace_write(args, workspace)?.with(["--facts".into(), file.into()]);
    program.check()?;
    let mut whole = Vec::new();
    let mut layers = Vec::new();
    for _ in 0..RUNS {
        // So that a run that wrote nothing is not taken for the one before it.
        fs::remove_file(file).map_err(|error| format!("facts: {}: {error}", file.display()))?;
        whole.push(timing::time(&program)?);
        let facts = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let facts: Facts =
            serde_json::from_slice(&facts).map_err(|error| format!("facts: {error}"))?;
        facts.enforcement.layers.into_iter().for_each(|fact| add(&mut layers, fact));
    }
    Ok(summarize(median(&whole), layers))
}

/// Files a layer's time under its name, in the order in which the names first came.
fn add(layers: &mut Vec<Layer>, fact: LayerFact) {
    let LayerFact { layer, state, microseconds } = fact;
    match layers.iter_mut().find(|known| known.layer == layer) {
        Some(known) => known.samples.extend(microseconds),
        None => layers.push(Layer {
            layer,
            state,
            microseconds: None,
            share: None,
            samples: microseconds.into_iter().collect(),
        }),
    }
}

fn summarize(run: f64, mut layers: Vec<Layer>) -> Trace {
    let mut sum = 0.0;
    for layer in layers.iter_mut().filter(|layer| !layer.samples.is_empty()) {
        let microseconds = median(&layer.samples);
        layer.microseconds = Some(microseconds);
        layer.share = Some(microseconds / run);
        sum += microseconds;
    }
    Trace { runs: RUNS, run_microseconds: run, layers, sum_microseconds: sum, sum_share: sum / run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_keep_their_order_and_one_without_a_time_adds_nothing() {
        let mut layers = Vec::new();
        for time in [30.0, 10.0, 20.0] {
            for (layer, microseconds) in [("mount", Some(time)), ("observer", None)] {
                let (layer, state) = (layer.to_owned(), "enforced".to_owned());
                add(&mut layers, LayerFact { layer, state, microseconds });
            }
        }
        let trace = summarize(100.0, layers);
        let names: Vec<_> = trace.layers.iter().map(|layer| layer.layer.as_str()).collect();
        assert_eq!(names, ["mount", "observer"]);
        assert_eq!(trace.layers[0].microseconds, Some(20.0));
        assert_eq!(trace.layers[1].microseconds, None);
        assert_eq!((trace.sum_microseconds, trace.sum_share), (20.0, 0.2));
    }
}
