//! What the facts of a run claim.

use std::collections::BTreeSet;

use dsh_facts::{Enforcement, Facts, Layer, Level, Outcome, State, VERSION};

use crate::support::problems::Problems;

/// A layer as one line: `mount absent EACCES`.
pub(crate) fn line(layer: Layer, state: State, errno: Option<&str>) -> String {
    let state = format!("{state:?}").to_lowercase();
    format!("{layer} {state} {}", errno.unwrap_or_default()).trim_end().to_owned()
}

/// The layers, each as one line.
pub(crate) fn layers(enforcement: &Enforcement) -> BTreeSet<String> {
    let lines = enforcement.layers.iter();
    lines.map(|fact| line(fact.layer, fact.state, fact.errno.as_deref())).collect()
}

/// The effects of the gaps.
pub(crate) fn gaps(enforcement: &Enforcement) -> BTreeSet<String> {
    enforcement.gaps.iter().map(|gap| gap.effect.clone()).collect()
}

/// What holds of the facts of every confined run, wherever it is. Returns its enforcement.
pub(crate) fn check_shape(problems: &mut Problems, facts: &Facts) -> Enforcement {
    problems.equal("version", facts.version, VERSION);
    problems.equal("outcome", facts.outcome, Outcome::Ran);
    problems.check(facts.error.is_none(), || format!("an error of a run: {:?}", facts.error));
    let Some(enforcement) = facts.enforcement.clone() else {
        problems.check(false, || "no enforcement".to_owned());
        return Enforcement::new(Vec::new(), Vec::new());
    };
    let full = enforcement.gaps.is_empty();
    problems.equal("level", enforcement.level, if full { Level::Full } else { Level::Partial });
    for gap in &enforcement.gaps {
        let said = [&gap.effect, &gap.reason, &gap.remedy].iter().all(|text| !text.is_empty());
        problems.check(said, || format!("a gap that says too little: {gap:?}"));
    }
    let names: BTreeSet<Layer> = enforcement.layers.iter().map(|fact| fact.layer).collect();
    problems.equal("layers listed once each", enforcement.layers.len(), names.len());
    for fact in &enforcement.layers {
        let absent = fact.state == State::Absent;
        problems.equal("an errno where a layer is absent", fact.errno.is_some(), absent);
    }
    enforcement
}
