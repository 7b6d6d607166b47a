//! Classes of hosts: what each offers, and so what must stop an attack there.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

use crate::support::binaries::Binaries;
use crate::support::persona::Persona;
use crate::table::{Expectation, Layer};

/// A class, as `classes.toml` states it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    pub(crate) name: Name,
    #[serde(default)]
    refused: BTreeMap<String, String>,
    #[serde(default)]
    unable: BTreeMap<Need, String>,
    #[serde(default)]
    instead: Vec<Instead>,
}

/// As `DSH_HOST` and the attacks name a class.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    Bare,
    Podman,
    Docker,
}

impl Name {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }
}

/// What the host must let the suite do, so that an attack can be made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    /// Mount.
    Mounts,
    /// Make device nodes.
    Nodes,
    /// Open devices of which a sandbox has none.
    Devices,
}

/// What takes the place of a layer that is absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instead {
    /// The layer; none is any.
    of: Option<Layer>,
    /// The errno that it would have given; none is any.
    was: Option<String>,
    /// The effect of the attack; none is any.
    gap: Option<String>,
    errno: String,
    layer: Layer,
    /// The call that is refused now.
    at: Option<String>,
}

impl Class {
    /// The class that the environment names. Without one it is a host that offers everything.
    pub(crate) fn of_this_host() -> Self {
        #[derive(Deserialize)]
        struct Classes {
            class: Vec<Class>,
        }
        let name = std::env::var("DSH_HOST").unwrap_or_else(|_| "bare".to_owned());
        let classes: Classes = toml::from_str(include_str!("classes.toml"))
            .unwrap_or_else(|error| panic!("classes.toml: {error}"));
        let class = classes.class.into_iter().find(|class| class.name.as_str() == name);
        class.unwrap_or_else(|| panic!("DSH_HOST={name}: classes.toml has no such class"))
    }

    /// Why what one of these needs cannot be had, if so.
    pub(crate) fn unable(&self, needs: &[Need]) -> Option<&str> {
        needs.iter().find_map(|need| self.unable.get(need)).map(String::as_str)
    }

    /// What must happen here, where the attack's own table names no class.
    pub(crate) fn translate(&self, expectation: &Expectation, gap: Option<&str>) -> Expectation {
        let fits = |instead: &&Instead| {
            instead.of.is_none_or(|layer| layer == expectation.layer)
                && instead.was.as_ref().is_none_or(|errno| *errno == expectation.errno)
                && instead.gap.as_deref().is_none_or(|effect| Some(effect) == gap)
        };
        match self.instead.iter().find(fits) {
            None => expectation.clone(),
            Some(Instead { errno, layer, at, .. }) => Expectation {
                errno: errno.clone(),
                layer: *layer,
                at: at.clone().or_else(|| expectation.at.clone()),
                ..expectation.clone()
            },
        }
    }

    /// Where `dsh-run doctor` contradicts the class.
    pub(crate) fn check(
        &self,
        persona: Persona,
        binaries: &Binaries,
    ) -> io::Result<Option<String>> {
        let mut doctor = Command::new(binaries.dsh_run());
        doctor.args(["doctor", "--json"]).stdin(Stdio::null()).current_dir("/");
        persona.dress(&mut doctor);
        let report: Value = serde_json::from_slice(&doctor.output()?.stdout)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let steps = report["steps"].as_array().into_iter().flatten();
        let refused: BTreeMap<String, String> = steps
            .filter(|step| step["offered"] == false)
            .map(|step| (text(&step["step"]), text(&step["errno"])))
            .collect();
        Ok((refused != self.refused).then(|| {
            let name = self.name.as_str();
            format!("DSH_HOST={name}: refused are {refused:?}, not {:?}", self.refused)
        }))
    }
}
