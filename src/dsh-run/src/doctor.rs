//! `dsh-run doctor`: what this host can enforce, step by step and rung by rung.

use std::fmt::Write as _;
use std::path::PathBuf;

use dsh_facts::{Gap, SandboxMode};
use dsh_sandbox::{Host, LayerError, Request, SandboxError, WardenProgram, probe, resolve};
use nix::errno::Errno;
use serde_json::json;

use crate::error::{Error, system};
use crate::output::print_json;

/// Probes the host and prints the table. The status is 0 when both confined rungs run here, 1 when
/// one does not, 2 when neither does.
pub(crate) fn doctor(as_json: bool) -> Result<u8, Error> {
    let host = probe(&WardenProgram::Fork)?;
    let rungs: Vec<Rung> = [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite]
        .into_iter()
        .map(|mode| Rung::of(mode, &host))
        .collect();
    let broken = rungs.iter().filter(|rung| rung.refusal.is_some()).count();
    if as_json {
        print_json(&json!({
            "version": 1,
            "steps": steps(&host).iter().map(Step::json).collect::<Vec<_>>(),
            "modes": rungs.iter().map(Rung::json).collect::<Vec<_>>(),
        }))?;
    } else {
        print(&host, &rungs)?;
    }
    Ok(u8::try_from(broken).unwrap_or(u8::MAX))
}

/// One step of the probe.
struct Step<'a> {
    name: &'static str,
    error: Option<&'a LayerError>,
    detail: Option<String>,
}

fn steps(host: &Host) -> Vec<Step<'_>> {
    vec![
        plain("user_namespace", &host.user_namespace),
        plain("mount", &host.mounts),
        plain("pid_namespace", &host.pid_namespace),
        plain("ipc_namespace", &host.ipc_namespace),
        plain("network", &host.network),
        plain("namespace_lock", &host.namespace_lock),
        Step {
            name: "landlock",
            error: host.landlock.as_ref().err(),
            detail: host.landlock.as_ref().ok().map(|abi| format!("ABI {abi}")),
        },
        plain("seccomp", &host.seccomp),
    ]
}

fn plain<'a>(name: &'static str, outcome: &'a Result<(), LayerError>) -> Step<'a> {
    Step { name, error: outcome.as_ref().err(), detail: None }
}

impl Step<'_> {
    fn json(&self) -> serde_json::Value {
        json!({
            "step": self.name,
            "offered": self.error.is_none(),
            "errno": self.error.map(|error| format!("{:?}", Errno::from_raw(error.errno))),
            "detail": self.error.map(|error| error.step.clone()).or_else(|| self.detail.clone()),
        })
    }
}

/// What one rung comes to here.
struct Rung {
    mode: SandboxMode,
    gaps: Vec<Gap>,
    refusal: Option<SandboxError>,
}

impl Rung {
    fn of(mode: SandboxMode, host: &Host) -> Self {
        // Nothing is run, so any directory that may be a workspace will do.
        let request = Request {
            mode: Some(mode),
            workspace: Some(PathBuf::from("/usr")),
            workdir: Some(PathBuf::from("/usr")),
            allow_home: true,
            command: vec!["true".into()],
            ..Request::default()
        };
        match resolve(&request, host, None) {
            Ok(plan) => Self { mode, gaps: plan.gaps, refusal: None },
            Err(error) => Self { mode, gaps: Vec::new(), refusal: Some(error) },
        }
    }

    fn level(&self) -> &'static str {
        match (&self.refusal, self.gaps.is_empty()) {
            (Some(_), _) => "refused",
            (None, true) => "full",
            (None, false) => "partial",
        }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "mode": self.mode,
            "level": self.level(),
            "gaps": self.gaps,
            "error": self.refusal.as_ref().map(ToString::to_string),
        })
    }
}

fn print(host: &Host, rungs: &[Rung]) -> Result<(), Error> {
    let mut text = String::new();
    for step in steps(host) {
        let answer = match step.error {
            None => step.detail.unwrap_or_else(|| "yes".to_owned()),
            Some(error) => {
                let errno = Errno::from_raw(error.errno);
                format!("no: {}: {} ({errno:?})", error.step, errno.desc())
            }
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<16} {answer}", step.name);
    }
    for rung in rungs {
        let _ = writeln!(text, "\n{:<16} {}", rung.mode, rung.level());
        for gap in &rung.gaps {
            let _ = writeln!(text, "  gap {}: {}", gap.effect, gap.reason);
            let _ = writeln!(text, "      remedy: {}", gap.remedy);
        }
        if let Some(error) = &rung.refusal {
            let _ = writeln!(text, "  {error}");
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())
        .map_err(|error| system("write to standard output")(crate::error::errno(&error)))
}
