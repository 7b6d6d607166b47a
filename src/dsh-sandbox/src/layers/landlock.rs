//! Landlock, on top of the mounts: writes only below the writable roots and the scratch, to the
//! device nodes, and to the files that the caller handed over.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dsh_facts::Layer;
use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};

use crate::error::{LayerError, Step, errno_of};
use crate::plan::LandlockPlan;

const LAYER: Layer = Layer::Landlock;

/// Restricts the calling thread and all it starts. There is no way back.
///
/// `grants` are open files that may be written, and opened for writing again.
pub(crate) fn restrict(plan: &LandlockPlan, grants: &[BorrowedFd<'_>]) -> Result<(), LayerError> {
    let abi = known_abi(plan.abi);
    let writes = AccessFs::from_write(abi);
    let mut ruleset = Ruleset::default()
        // What the plan asks for, this kernel has: anything less is an error.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(writes)
        .map_err(|error| failed("handle", &error))?;
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::Signal).map_err(|error| failed("scope", &error))?;
        if plan.scope_abstract_sockets {
            ruleset = ruleset
                .scope(Scope::AbstractUnixSocket)
                .map_err(|error| failed("scope", &error))?;
        }
    }
    let mut ruleset = ruleset.create().map_err(|error| failed("create_ruleset", &error))?;
    for root in &plan.roots {
        let failed = |step, errno| LayerError::new(LAYER, step, errno).at(&root.path);
        let directory = open_path(root.path()).map_err(|errno| failed("open", errno))?;
        let found = fstat(&directory).map_err(|errno| failed("fstat", errno))?;
        if (found.st_dev, found.st_ino) != (root.device, root.inode) {
            // Another directory, or a symbolic link to one, has taken the name since the plan was
            // made.
            return Err(failed("compare", Errno::ESTALE));
        }
        add(&mut ruleset, &directory, writes)?;
    }
    for path in plan.scratch.iter().map(Path::new) {
        let directory = open_path(path).step(LAYER, "open").map_err(|error| error.at(path))?;
        add(&mut ruleset, &directory, writes)?;
    }
    let files = writes & AccessFs::from_file(abi);
    for path in plan.devices.iter().map(Path::new) {
        match open_path(path) {
            Ok(device) if is_directory(&device) => add(&mut ruleset, &device, writes)?,
            Ok(device) => add(&mut ruleset, &device, files)?,
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(LayerError::new(LAYER, "open", errno).at(path)),
        }
    }
    if abi >= ABI::V9 {
        for path in plan.sockets.iter().map(Path::new) {
            match open_path(path) {
                Ok(socket) => add(&mut ruleset, &socket, AccessFs::ResolveUnix.into())?,
                // A service that is not there yet, or that nobody may reach.
                Err(Errno::ENOENT | Errno::EACCES) => {}
                Err(errno) => return Err(LayerError::new(LAYER, "open", errno).at(path)),
            }
        }
    }
    for grant in grants {
        match add(&mut ruleset, grant, files) {
            // A file without a place in the mount tree, such as a memfd: no rule can name it, and
            // none restricts it.
            Err(error) if error.errno == Errno::EBADFD as i32 => {}
            result => result?,
        }
    }
    ruleset.restrict_self().map_err(|error| failed("restrict_self", &error)).map(drop)
}

fn add(
    ruleset: &mut RulesetCreated,
    file: &impl AsFd,
    access: BitFlags<AccessFs>,
) -> Result<(), LayerError> {
    ruleset
        .add_rule(PathBeneath::new(file, access))
        .map_err(|error| failed("add_rule", &error))
        .map(drop)
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
}

fn is_directory(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|stat| stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits())
}

/// The ABI in the crate's terms; a newer kernel is restricted by all that the crate knows.
fn known_abi(abi: u32) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    }
}

fn failed(step: &str, error: &(dyn std::error::Error + 'static)) -> LayerError {
    LayerError::new(LAYER, step, errno_of(error))
}
