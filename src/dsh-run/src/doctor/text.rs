//! The report for people: what the host offers, why it refuses the rest, what governs each effect.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dsh_facts::{Cause, Gap, HostReport, Layer, ModeLevel, ModeReport, StepReport};

/// The width of the column of names: the longest, `danger-full-access`, and two blanks.
const NAME: usize = 20;
/// The width of a mode's column.
const CELL: usize = 28;

pub(crate) fn of(report: &HostReport) -> String {
    let mut page = Page::default();
    page.line("host", host(report));
    page.line("offered", offered(report));
    refused(report, &mut page);
    page.gap();
    let confined: Vec<&ModeReport> =
        report.modes.iter().filter(|mode| mode.mode.confines()).collect();
    let effects = effects(&confined);
    table(&confined, &effects, &mut page);
    for mode in report.modes.iter().filter(|mode| mode.level == ModeLevel::Unconfined) {
        page.line(mode.mode.as_str(), "confines nothing");
    }
    page.gap();
    gaps(report, &confined, &effects, &mut page);
    page.text
}

/// Lines with a name in front.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, name: &str, value: impl AsRef<str>) {
        let line = format!("{name:<NAME$}{}", value.as_ref());
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }
}

fn host(report: &HostReport) -> String {
    let container = report.container.as_ref().map(|kind| format!(", looks like {kind}"));
    format!("Linux {}, uid {}{}", report.kernel, report.uid, container.unwrap_or_default())
}

fn offered(report: &HostReport) -> String {
    let name = |step: &StepReport| match step.abi {
        Some(abi) => format!("{} (ABI {abi})", step.step),
        None => step.step.to_string(),
    };
    let offered = report.steps.iter().filter(|step| step.offered && step.needs.is_none());
    let names: Vec<String> = offered.map(name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Each refused step with its causes, and then those that are lost with it.
fn refused(report: &HostReport, page: &mut Page) {
    for step in report.steps.iter().filter(|step| !step.causes.is_empty()) {
        let refusal = match (step.needs, &step.call, &step.errno) {
            (None, Some(call), Some(errno)) => format!(": {call}: {errno}"),
            (Some(needed), ..) => format!(", also once there is {needed}"),
            _ => String::new(),
        };
        page.line("refused", format!("{}{refusal}", step.step));
        for cause in &step.causes {
            page.line("  cause", &cause.cause);
            if let Some(tell) = &cause.tell {
                page.line("    is it so?", tell);
            }
            page.line("    remedy", &cause.remedy);
        }
    }
    let mut lost: BTreeMap<Layer, Vec<String>> = BTreeMap::new();
    for step in &report.steps {
        if let Some(needed) = step.needs {
            lost.entry(needed).or_default().push(step.step.to_string());
        }
    }
    for (needed, steps) in lost {
        page.line("of no use", format!("{} without {needed}", steps.join(", ")));
    }
}

/// The names of all effects, in the order of the mode that promises most.
fn effects<'a>(modes: &[&'a ModeReport]) -> Vec<&'a str> {
    let longest = modes.iter().max_by_key(|mode| mode.effects.len());
    let effects = longest.into_iter().flat_map(|mode| &mode.effects);
    effects.map(|effect| effect.effect.as_str()).collect()
}

/// A row for each effect, a column for each mode.
fn table(modes: &[&ModeReport], effects: &[&str], page: &mut Page) {
    let row = |cell: &dyn Fn(&ModeReport) -> String| -> String {
        modes.iter().map(|mode| format!("{:<CELL$}", cell(mode))).collect()
    };
    page.line("", row(&|mode| format!("{}: {}", mode.mode, level(mode.level))));
    for &name in effects {
        page.line(
            name,
            row(&|mode| match mode.effects.iter().find(|effect| effect.effect == name) {
                None => "-".to_owned(),
                Some(effect) if effect.governed_by.is_empty() => "GAP".to_owned(),
                Some(effect) => effect.governed_by.join(" "),
            }),
        );
    }
}

fn level(level: ModeLevel) -> &'static str {
    match level {
        ModeLevel::Full => "full",
        ModeLevel::Partial => "partial",
        _ => "refused",
    }
}

/// Each gap once, with its remedy where that is not a refused step's.
fn gaps(report: &HostReport, modes: &[&ModeReport], effects: &[&str], page: &mut Page) {
    let of_steps = remedies(report);
    for name in effects {
        let gaps = modes.iter().flat_map(|mode| &mode.gaps).filter(|gap| gap.effect == *name);
        let mut said: Vec<&Gap> = Vec::new();
        for gap in gaps {
            if said.contains(&gap) {
                continue;
            }
            said.push(gap);
            page.line(name, &gap.reason);
            match of_steps.get(&gap.remedy) {
                Some(step) => page.line("  remedy", format!("that of {step}")),
                None => page.line("  remedy", &gap.remedy),
            }
        }
    }
    if let Some(error) = modes.iter().find_map(|mode| mode.error.as_ref()) {
        page.line("refused", &error.message);
    }
}

/// The refused steps by the remedy that brings each back.
fn remedies(report: &HostReport) -> BTreeMap<String, String> {
    let causes = |step: Layer| {
        let step = report.steps.iter().find(|one| one.step == step);
        step.map(|step| step.causes.clone()).unwrap_or_default()
    };
    let mut remedies = BTreeMap::new();
    for step in &report.steps {
        let own = causes(step.step);
        let name = match step.needs {
            Some(needed) if own.is_empty() => needed.to_string(),
            Some(needed) => format!("{needed} and that of {}", step.step),
            None => step.step.to_string(),
        };
        let all: Vec<Cause> = step.needs.map(causes).into_iter().flatten().chain(own).collect();
        remedies.entry(Cause::remedies(&all)).or_insert(name);
    }
    remedies
}
