//! Who runs the program under test.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{Gid, Uid, geteuid};
use serde::Deserialize;

/// A user id with the group of the same number and no other groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Persona {
    id: u32,
}

impl Persona {
    /// The superuser; needs a test that runs as root.
    pub(crate) const ROOT: Self = Self { id: 0 };

    /// An ordinary user: `nobody`, or whoever runs the test.
    pub(crate) fn ordinary() -> Self {
        Self { id: if geteuid().is_root() { 65534 } else { geteuid().as_raw() } }
    }

    /// Some user; needs a test that runs as root.
    pub(crate) fn of(id: u32) -> Self {
        Self { id }
    }

    /// Whether this is the superuser.
    pub(crate) fn is_root(self) -> bool {
        self == Self::ROOT
    }

    /// The user id, and the group id.
    pub(crate) fn id(self) -> u32 {
        self.id
    }

    /// As part of a test's name.
    pub(crate) fn label(self) -> String {
        if self.is_root() { "root".to_owned() } else { format!("uid{}", self.id) }
    }

    /// Why this test process cannot run something as the persona, if so.
    pub(crate) fn obstacle(self) -> Option<String> {
        let own = geteuid().as_raw();
        (own != 0 && own != self.id).then(|| format!("uid {own} cannot become {}", self.label()))
    }

    /// Lets the command run as the persona. The standard library drops supplementary groups when it
    /// sets a uid as root.
    pub(crate) fn dress(self, command: &mut Command) {
        if geteuid().is_root() {
            command.gid(self.id).uid(self.id);
        }
    }

    /// Makes the persona the owner of a file of the fixture.
    pub(crate) fn own(self, path: &Path) -> io::Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        nix::unistd::fchownat(
            nix::fcntl::AT_FDCWD,
            path,
            Some(Uid::from_raw(self.id)),
            Some(Gid::from_raw(self.id)),
            nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
        )?;
        Ok(())
    }
}

/// The kinds of persona, as tables of expectations name them.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum User {
    /// The superuser.
    Root,
    /// Anybody else.
    Ordinary,
}

impl User {
    /// Whether the persona is one.
    pub(crate) fn is(self, persona: Persona) -> bool {
        match self {
            Self::Root => persona.is_root(),
            Self::Ordinary => !persona.is_root(),
        }
    }
}
