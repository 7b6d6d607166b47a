//! The policy of a run: the rung, narrowed by the profile, narrowed by the request.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use dsh_facts::{Network, Observe, SandboxMode};

use crate::error::RequestError;
use crate::profile::{Profile, ProfilePath};
use crate::request::{EnvironmentRequest, Request};
use crate::rung::Rung;
use crate::scratch_size::ScratchSize;
use crate::seccomp_rules::{Rule, Rules};

/// What is wanted, before a look at the host. Nothing is looked up in it.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) mode: SandboxMode,
    pub(crate) network: Network,
    pub(crate) pids: Option<u32>,
    pub(crate) scratch_size: ScratchSize,
    /// Writable roots of the profile: those that do not exist are left out.
    pub(crate) profile_writable: Vec<ProfilePath>,
    pub(crate) hidden: CarvedOut,
    pub(crate) protected: CarvedOut,
    /// Unix sockets of the profile: those that do not exist are left out.
    pub(crate) profile_sockets: Vec<ProfilePath>,
    pub(crate) observe: Observe,
    pub(crate) environment: EnvironmentRequest,
    rung: Rung,
    /// The profile's own rules.
    rules: Vec<Rule>,
}

/// Paths of one kind, by where they come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct CarvedOut {
    pub(crate) by_profile: Vec<ProfilePath>,
    pub(crate) by_request: Vec<PathBuf>,
}

impl CarvedOut {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_profile.is_empty() && self.by_request.is_empty()
    }
}

impl Policy {
    /// The policy of a request.
    ///
    /// # Errors
    ///
    /// [`RequestError::WiderThanProfile`], [`RequestError::Unconfined`], and
    /// [`RequestError::BuiltIn`].
    pub(crate) fn of(request: &Request) -> Result<Self, RequestError> {
        let mode = request.mode();
        let rung = Rung::of(mode)?;
        let profile = request.profile.as_ref();
        if let Some(profile) = profile {
            check_ceiling(request, profile)?;
        }
        if !mode.confines() {
            check_unconfined(request)?;
        }
        let network = request.network.or(profile.and_then(|profile| profile.network));
        let pids = request.pids.or(profile.and_then(|profile| profile.pids));
        let scratch_size =
            request.scratch_size.or(profile.and_then(|profile| profile.scratch_size));
        let of_profile = |paths: fn(&Profile) -> &Vec<ProfilePath>| {
            profile.map(|profile| paths(profile).clone()).unwrap_or_default()
        };
        Ok(Self {
            mode,
            network: network.unwrap_or(rung.network),
            pids: pids.or(rung.pids),
            scratch_size: scratch_size.or(rung.scratch_size).unwrap_or(ScratchSize::Share(25)),
            profile_writable: of_profile(|profile| &profile.writable),
            hidden: CarvedOut {
                by_profile: of_profile(|profile| &profile.hidden),
                by_request: request.hidden.clone(),
            },
            protected: CarvedOut {
                by_profile: of_profile(|profile| &profile.protected),
                by_request: request.protected.clone(),
            },
            profile_sockets: of_profile(|profile| &profile.sockets),
            observe: request.observe.or(rung.observe).unwrap_or(Observe::Off),
            environment: environment(request, profile),
            rules: profile.map(|profile| profile.rules.clone()).unwrap_or_default(),
            rung,
        })
    }

    /// Whether anything is hidden or protected.
    pub(crate) fn carves_out(&self) -> bool {
        !(self.hidden.is_empty() && self.protected.is_empty())
    }

    /// The refused system calls: the rung's table and the profile's rules; none for the widest.
    ///
    /// # Errors
    ///
    /// [`RequestError::BuiltIn`]
    pub(crate) fn rules(&self) -> Result<Option<Rules>, RequestError> {
        Ok(self.rung.rules()?.map(|table| table.and(&self.rules)))
    }
}

/// A profile is a ceiling for the request that uses it.
fn check_ceiling(request: &Request, profile: &Profile) -> Result<(), RequestError> {
    let wider = |option: String, allows: String| {
        Err(RequestError::WiderThanProfile { option, profile: profile.name.clone(), allows })
    };
    let above = [
        above("--mode", request.mode, Some(profile.mode)),
        above("--network", request.network, profile.network),
        above("--pids", request.pids, profile.pids),
        above("--scratch-size", request.scratch_size, profile.scratch_size),
    ];
    if let Some((option, allows)) = above.into_iter().flatten().next() {
        return wider(option, allows);
    }
    let withheld =
        |name: &&OsString| name.to_str().is_none_or(|name| profile.keeps_back(name).is_some());
    if let Some(name) = request.environment.pass.iter().find(withheld) {
        let option = format!("--pass-env {}", name.to_string_lossy());
        return wider(option, "other variables only".to_owned());
    }
    Ok(())
}

/// An option with a value that is more than what is allowed, and that.
fn above<T: PartialOrd + Display>(
    option: &str,
    asked: Option<T>,
    allowed: Option<T>,
) -> Option<(String, String)> {
    let (asked, allowed) = asked.zip(allowed)?;
    (asked > allowed).then(|| (format!("{option} {asked}"), allowed.to_string()))
}

/// What the widest rung cannot keep is not asked of it.
fn check_unconfined(request: &Request) -> Result<(), RequestError> {
    for (given, option) in [
        (request.network.is_some_and(|network| network != Network::Host), "--network"),
        (request.pids.is_some(), "--pids"),
        (request.scratch_size.is_some(), "--scratch-size"),
        (!request.hidden.is_empty(), "--hide"),
        (!request.protected.is_empty(), "--protect"),
        (!request.sockets.is_empty(), "--socket"),
        (request.observe.is_some_and(|observe| observe != Observe::Off), "--observe"),
        (request.require_full, "--require full"),
    ] {
        if given {
            return Err(RequestError::Unconfined { option });
        }
    }
    Ok(())
}

/// The request's environment on top of the profile's.
fn environment(request: &Request, profile: Option<&Profile>) -> EnvironmentRequest {
    let mut environment = request.environment.clone();
    let Some(profile) = profile else { return environment };
    environment.clear |= profile.clear_environment;
    environment.pass.extend(profile.pass.iter().map(OsString::from));
    environment.drop.extend(profile.drop.iter().map(OsString::from));
    let set = profile.set.iter().map(|(name, value)| (name.into(), value.into()));
    environment.set = set.chain(environment.set).collect();
    environment
}
