//! What the product makes of a request, in the words of the model.

use std::fs;
use std::io;
use std::path::Path;

use dsh_facts::SandboxMode;
use dsh_sandbox::{Host, Plan, Profile, Request, RequestError, SandboxError, Treatment, resolve};
use nix::errno::Errno;

use crate::generate::Asked;
use crate::model::{Effects, Prediction, Refusal};
use crate::world::World;

/// Writes the profile of a request.
pub(crate) fn write_profile(asked: &Asked, file: &str) -> io::Result<()> {
    let Some([writable, hidden, protected]) = &asked.profile else { return Ok(()) };
    let mode = if asked.writes { "workspace-write" } else { "read-only" };
    let mut text = format!("extends = \"{mode}\"\n");
    for (key, paths) in [("writable", writable), ("hidden", hidden), ("protected", protected)] {
        text += &format!("{key} = {paths:?}\n");
    }
    fs::write(file, text)
}

/// The same request of the library.
fn request(asked: &Asked, profile: &str) -> Result<Request, String> {
    let mode = if asked.writes { SandboxMode::WorkspaceWrite } else { SandboxMode::ReadOnly };
    let paths = |paths: &[String]| paths.iter().map(Into::into).collect();
    let profile = asked.profile.as_ref().map(|_| Profile::load(profile));
    let profile = profile.transpose().map_err(|error| error.to_string())?;
    Ok(Request {
        mode: profile.is_none().then_some(mode),
        profile,
        workspace: asked.workspace.as_ref().map(Into::into),
        writable: paths(&asked.writable),
        hidden: paths(&asked.hidden),
        protected: paths(&asked.protected),
        allow_home: asked.allow_home,
        command: vec!["true".into()],
        ..Request::default()
    })
}

/// Resolves the request, from its directory.
pub(crate) fn predict(
    world: &World,
    asked: &Asked,
    profile: &str,
    host: &Host,
) -> Result<Result<Prediction, Refusal>, String> {
    std::env::set_current_dir(&asked.directory).map_err(|error| error.to_string())?;
    match resolve(&request(asked, profile)?, host, None) {
        Ok(plan) => Ok(Ok(prediction(world, &plan))),
        Err(SandboxError::Request(error)) => refusal(error).map(Err),
        Err(error) => Err(error.to_string()),
    }
}

fn refusal(error: RequestError) -> Result<Refusal, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match error {
        RequestError::Root { path, errno, .. } => {
            Refusal::Root(text(&path), Errno::from_raw(errno))
        }
        RequestError::RootTooWide { path, .. } => Refusal::TooWide(text(&path)),
        RequestError::RootThroughRoot { path, .. } => Refusal::ThroughRoot(text(&path)),
        RequestError::GoverningFile { role: "profile", .. } => Refusal::Profile,
        RequestError::CoversRoot { path, .. } => Refusal::HidesRoot(text(&path)),
        error => return Err(error.to_string()),
    })
}

fn prediction(world: &World, plan: &Plan) -> Prediction {
    let texts = |paths: &[std::path::PathBuf]| {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    Prediction {
        workspace: plan.workspace.path().to_string_lossy().into_owned(),
        writable: plan.writable.iter().map(|root| root.path().to_string_lossy().into()).collect(),
        hidden: texts(&plan.hidden),
        protected: texts(&plan.protected),
        missing: texts(&plan.missing),
        effects: effects(world, plan),
    }
}

/// What the mounts of a plan amount to, place by place.
fn effects(world: &World, plan: &Plan) -> Effects {
    let carve_outs = plan.command.mounts.iter().flat_map(|mounts| &mounts.carve_outs);
    let carve_outs: Vec<_> = carve_outs.collect();
    let mut effects = Effects::default();
    for place in world.places() {
        let path = world.path(place);
        let path = Path::new(&path);
        let is = |treatment| {
            let mut of_it = carve_outs.iter().filter(|one| one.treatment == treatment);
            of_it.any(|one| path.starts_with(&one.path))
        };
        let is_in_root = plan.writable.iter().any(|root| path.starts_with(root.path()));
        if is(Treatment::Hidden) {
            effects.hidden.insert(place);
        } else if is_in_root && !is(Treatment::Protected) {
            effects.writable.insert(place);
        }
        let is_root = plan.writable.iter().any(|root| root.path() == path);
        if is_root || carve_outs.iter().any(|one| Path::new(&one.path) == path) {
            effects.pinned.insert(place.node);
        }
    }
    effects
}
