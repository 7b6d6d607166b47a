//! `dsh-run explain`: what a run would be confined to, without running it.

use std::fmt::Write as _;
use std::path::PathBuf;

use dsh_facts::{Observe, text};
use dsh_sandbox::{Plan, WardenProgram, probe, refused_calls, resolve};
use serde_json::json;

use crate::arguments::ExplainOptions;
use crate::error::{Error, one_line};
use crate::output::{print, print_json};

/// Probes the host, resolves the options, and prints the plan.
pub(crate) fn explain(options: &ExplainOptions) -> Result<u8, Error> {
    let mut request = options.run.request()?;
    if request.command.is_empty() {
        request.command = vec!["true".into()];
    }
    let host = probe(&WardenProgram::Fork)?;
    let plan = resolve(&request, &host, None)?;
    if options.json {
        return print_json(&as_json(&plan));
    }
    print(as_text(&plan).as_bytes())
}

fn as_json(plan: &Plan) -> serde_json::Value {
    let refused: Vec<_> = refused_calls(plan)
        .into_iter()
        .map(|rule| {
            json!({
                "calls": rule.calls,
                "errno": rule.errno,
                "only_some_arguments": rule.conditional,
                "why": rule.why,
            })
        })
        .collect();
    json!({
        "version": 1,
        "mode": plan.mode,
        "workspace": text(plan.workspace.path()),
        "profile": plan.profile,
        "writable": writable(plan),
        "hidden": texts(&plan.hidden),
        "protected": texts(&plan.protected),
        "missing": texts(&plan.missing),
        "scratch_size": scratch_size(plan),
        "network": plan.network,
        "observe": observe(plan),
        "layers": layers(plan),
        "gaps": plan.gaps,
        "env_dropped": plan.environment_dropped.iter().map(text).collect::<Vec<_>>(),
        "filter_instructions":
            plan.command.confinement.as_ref().map_or(0, |confinement| confinement.filter.len()),
        "refused_calls": refused,
    })
}

fn as_text(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<12} {}", one_line(&value));
    };
    line("mode", plan.mode.to_string());
    if let Some(profile) = &plan.profile {
        line("profile", profile.clone());
    }
    line("workspace", text(plan.workspace.path()));
    let writable = writable(plan);
    line("writable", if writable.is_empty() { "nothing".to_owned() } else { writable.join(" ") });
    for (name, paths) in [
        ("hidden", texts(&plan.hidden)),
        ("protected", texts(&plan.protected)),
        ("missing", texts(&plan.missing)),
    ] {
        if !paths.is_empty() {
            line(name, paths.join(" "));
        }
    }
    line("network", plan.network.to_string());
    if let Some(level) = observe(plan) {
        line("observed", level.to_string());
    }
    if let Some(size) = scratch_size(plan) {
        line("scratch", size.to_owned());
    }
    line("layers", layers(plan).join(" "));
    for gap in &plan.gaps {
        line("gap", format!("{}: {} (remedy: {})", gap.effect, gap.reason, gap.remedy));
    }
    if !plan.environment_dropped.is_empty() {
        let names: Vec<_> = plan.environment_dropped.iter().map(text).collect();
        line("env dropped", names.join(" "));
    }
    for rule in refused_calls(plan) {
        let some = if rule.conditional { " (some arguments)" } else { "" };
        line("refused", format!("{}: {}{some}: {}", rule.errno, rule.calls.join(" "), rule.why));
    }
    out
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(text).collect()
}

fn scratch_size(plan: &Plan) -> Option<&str> {
    plan.command.mounts.as_ref().map(|mounts| mounts.scratch_size.as_str())
}

fn observe(plan: &Plan) -> Option<Observe> {
    let confinement = plan.command.confinement.as_ref();
    confinement.and_then(|one| one.observer.as_ref()).map(|observer| observer.level)
}

fn writable(plan: &Plan) -> Vec<String> {
    if !plan.mode.confines() {
        return vec!["/".to_owned()];
    }
    plan.writable.iter().map(|root| text(root.path())).collect()
}

fn layers(plan: &Plan) -> Vec<&'static str> {
    let confinement = plan.command.confinement.as_ref();
    [
        (plan.world.user_namespace.is_some(), "user_namespace"),
        (plan.world.ipc_namespace, "ipc_namespace"),
        (plan.world.network.is_some(), "network"),
        (plan.world.lock_user_namespaces, "namespace_lock"),
        (plan.command.pid_namespace, "pid_namespace"),
        (plan.command.mounts.is_some(), "mount"),
        (plan.command.mounts.is_some(), "proc"),
        (confinement.is_some(), "limits"),
        (confinement.is_some(), "capabilities"),
        (confinement.is_some_and(|one| one.landlock.is_some()), "landlock"),
        (confinement.is_some(), "descriptors"),
        (confinement.is_some(), "seccomp"),
        (confinement.is_some_and(|one| one.observer.is_some()), "observer"),
    ]
    .into_iter()
    .filter_map(|(used, name)| used.then_some(name))
    .collect()
}
