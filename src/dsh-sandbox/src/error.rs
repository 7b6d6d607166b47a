//! Errors: each names the step, the path and the errno, and says what to do.

use std::ffi::OsString;
use std::path::PathBuf;

use dsh_facts::Layer;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// A layer that did not apply. It crosses process borders, hence the plain fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("layer {layer}: {step}{}: {}", path_suffix(self.path.as_ref()), errno_text(*errno))]
pub struct LayerError {
    /// Which layer.
    pub layer: Layer,
    /// The step of it: a system call or what it is for.
    pub step: String,
    /// The path concerned.
    pub path: Option<OsString>,
    /// The errno.
    pub errno: i32,
}

impl LayerError {
    pub(crate) fn new(layer: Layer, step: &str, errno: Errno) -> Self {
        Self { layer, step: step.to_owned(), path: None, errno: errno as i32 }
    }

    pub(crate) fn at(mut self, path: impl Into<OsString>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Whether the errno says that the host does not offer the step, rather than that it failed
    /// this once. Only then may a run fall to the next row of the ladder.
    pub(crate) fn means_absent(&self) -> bool {
        matches!(
            Errno::from_raw(self.errno),
            Errno::EPERM
                | Errno::EACCES
                | Errno::ENOSYS
                | Errno::EOPNOTSUPP
                | Errno::EINVAL
                | Errno::ENOSPC
                | Errno::EUSERS
                | Errno::EROFS
                | Errno::ENOENT
                | Errno::E2BIG
                | Errno::ENODEV
                // A second listener, seccomp(2).
                | Errno::EBUSY
        )
    }
}

/// Fails a step of a layer.
pub(crate) trait Step<T> {
    /// Names the layer and the step in which an errno came up.
    fn step(self, layer: Layer, step: &str) -> Result<T, LayerError>;
}

impl<T> Step<T> for Result<T, Errno> {
    fn step(self, layer: Layer, step: &str) -> Result<T, LayerError> {
        self.map_err(|errno| LayerError::new(layer, step, errno))
    }
}

impl<T> Step<T> for std::io::Result<T> {
    fn step(self, layer: Layer, step: &str) -> Result<T, LayerError> {
        self.map_err(|error| LayerError::new(layer, step, errno_of(&error)))
    }
}

/// The errno inside an error, wherever a library has wrapped it; EIO where there is none.
pub(crate) fn errno_of(error: &(dyn std::error::Error + 'static)) -> Errno {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(number) =
            error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error)
        {
            return Errno::from_raw(number);
        }
        if let Some(errno) = error.downcast_ref::<Errno>() {
            return *errno;
        }
        next = error.source();
    }
    Errno::EIO
}

/// `Permission denied (EACCES)`: the words of the field first, the name to look up behind them.
pub(crate) fn errno_text(errno: i32) -> String {
    let errno = Errno::from_raw(errno);
    format!("{} ({})", errno.desc(), errno_name(errno))
}

/// `EACCES`.
pub(crate) fn errno_name(errno: Errno) -> String {
    format!("{errno:?}")
}

fn path_suffix(path: Option<&OsString>) -> String {
    path.map(|path| format!(" {}", PathBuf::from(path).display())).unwrap_or_default()
}

/// A request that cannot be carried out as it stands: nothing ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A root that cannot be used at all.
    #[error("{role} {}: {}: name an existing directory with {flag}", path.display(), errno_text(*errno))]
    Root {
        /// `workspace` or `writable root`.
        role: &'static str,
        /// The flag that names it.
        flag: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The errno of looking it up.
        errno: i32,
    },
    /// A root that would give away what the mode protects.
    #[error("{role} {} {reason}, and {mode} would make it writable: {remedy}", path.display())]
    RootTooWide {
        /// `workspace` or `writable root`.
        role: &'static str,
        /// The path as resolved.
        path: PathBuf,
        /// Why it cannot be writable.
        reason: String,
        /// The mode.
        mode: dsh_facts::SandboxMode,
        /// What to do.
        remedy: &'static str,
    },
    /// A root that is reached by names which the command may change.
    #[error("{role} {} is reached through the writable root {}, where a command could lead it elsewhere: name {} itself", path.display(), through.display(), root.display())]
    RootThroughRoot {
        /// `workspace` or `writable root`.
        role: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The root in which a name on the way lies.
        through: PathBuf,
        /// Where the way leads.
        root: PathBuf,
    },
    /// The working directory cannot be found.
    #[error("the current directory: {}: name one with --workdir", errno_text(*errno))]
    CurrentDirectory {
        /// The errno of getcwd(3).
        errno: i32,
    },
    /// Neither directories nor processes can be told apart.
    #[error(
        "/proc is not mounted, and the sandbox knows directories and processes by it: mount it"
    )]
    NoProc,
    /// The sandbox cannot see the working directory.
    #[error("the sandbox cannot see the directory {} ({}): name another with --workdir", path.display(), workdir_text(*errno))]
    Workdir {
        /// The directory.
        path: PathBuf,
        /// The errno of entering it, or `ESTALE` when another directory is in its place there.
        errno: i32,
    },
    /// A descriptor that would reach past every layer.
    #[error("{} is {what}, which would reach past the sandbox: use {remedy}", stdio_name(*descriptor))]
    Stdio {
        /// 0, 1 or 2.
        descriptor: i32,
        /// What it is.
        what: &'static str,
        /// What can be passed instead.
        remedy: &'static str,
    },
    /// A file that governs or records a run and that the command could replace.
    #[error("the {role} {} lies below the writable root {}, where the command could replace it: put it elsewhere", path.display(), root.display())]
    GoverningFile {
        /// Such as `facts file`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// An option that the widest rung cannot keep.
    #[error(
        "danger-full-access confines nothing, so {option} cannot be kept: drop it or use a narrower mode"
    )]
    Unconfined {
        /// The option.
        option: &'static str,
    },
    /// No command.
    #[error("an empty command: name a program")]
    EmptyCommand,
    /// The command and its environment do not fit.
    #[error("a NUL byte in {what}: the kernel cannot take it")]
    Nul {
        /// `an argument` or `the environment`.
        what: &'static str,
    },
    /// Something that goes beyond the profile in use.
    #[error(
        "{option} goes beyond the profile {profile}, which allows {allows}: a profile can only be narrowed"
    )]
    WiderThanProfile {
        /// The option and its value.
        option: String,
        /// The profile.
        profile: String,
        /// What it allows.
        allows: String,
    },
    /// A hidden or protected path that holds what the command is to work in.
    #[error("{what} path {} is or holds {}: name what the command does not need", path.display(), holds.display())]
    CoversRoot {
        /// `hidden` or `protected`.
        what: &'static str,
        /// The path, as given.
        path: PathBuf,
        /// The workspace or writable root.
        holds: PathBuf,
    },
    /// A hidden or protected path in a place of which the sandbox has its own.
    #[error("{what} path {} lies in {own}, of which the sandbox has its own: leave it out", path.display())]
    CoversOwn {
        /// `hidden` or `protected`.
        what: &'static str,
        /// The path, as given.
        path: PathBuf,
        /// `/proc` or `/dev`.
        own: &'static str,
    },
    /// A profile names a path below the home directory, and there is none.
    #[error(
        "profile path {path}: HOME is not set to an absolute path: set it, or write the path out"
    )]
    NoHome {
        /// The path as written.
        path: String,
    },
    /// A profile of ours that does not parse: a defect of this build.
    #[error("built-in profile {name}: {message}")]
    BuiltIn {
        /// Which one.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

fn workdir_text(errno: i32) -> String {
    if errno == Errno::ESTALE as i32 {
        "another one has its name in there".to_owned()
    } else {
        errno_text(errno)
    }
}

fn stdio_name(descriptor: i32) -> &'static str {
    match descriptor {
        0 => "standard input",
        1 => "standard output",
        _ => "standard error",
    }
}

/// Why a command did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The request itself.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A layer that the mode requires did not apply.
    #[error("{0}: the command was not run; dsh-run doctor says what this host offers")]
    Layer(#[from] LayerError),
    /// The host offers too little to confine anything.
    #[error("this host cannot confine a command: {refusals}: {remedy}")]
    Unavailable {
        /// Each probe that failed, with its errno.
        refusals: String,
        /// What to do.
        remedy: &'static str,
        /// The first of them.
        first: LayerError,
    },
    /// Hidden or protected paths on a host where nothing can be mounted.
    #[error(
        "hidden and protected paths need mounts of the sandbox's own: {0}: the command was not run; drop them, or allow user namespaces"
    )]
    CarveOuts(LayerError),
    /// Full enforcement was required and there are gaps.
    #[error(
        "enforcement would be partial ({effects}): the command was not run; --require partial accepts it"
    )]
    Partial {
        /// The effects that are not governed.
        effects: String,
    },
    /// The warden could not be started or spoken to.
    #[error("warden: {step}: {}", errno_text(*errno))]
    Warden {
        /// What was tried.
        step: &'static str,
        /// The errno.
        errno: i32,
    },
    /// [`crate::WardenProgram::Fork`] in a program that has threads.
    #[error(
        "a program with more than one thread cannot fork a warden: use WardenProgram::current() and call dispatch() first thing in main"
    )]
    Threads,
    /// The processes around the command ended without a report.
    #[error("the sandbox's own processes ended without a report (killed from outside?)")]
    RunnerFailed,
    /// Nobody could answer the calls that the command's filter handed over.
    #[error(
        "{0}: the command was ended, because nobody could decide about its calls any more: raise the limit that the errno names, or run without an observer (--observe off)"
    )]
    ObserverFailed(LayerError),
}

impl SandboxError {
    pub(crate) fn warden(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Warden { step, errno: errno as i32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_error_is_one_line_with_layer_step_path_and_errno() {
        let error = LayerError::new(Layer::Mount, "open_tree", Errno::EPERM).at("/w");
        assert_eq!(error.to_string(), "layer mount: open_tree /w: Operation not permitted (EPERM)");
    }

    #[test]
    fn exhaustion_is_a_failure_and_no_reason_to_run_with_less() {
        for errno in [Errno::ENOMEM, Errno::EMFILE, Errno::EIO, Errno::EAGAIN] {
            assert!(!LayerError::new(Layer::UserNamespace, "unshare", errno).means_absent());
        }
        for errno in [Errno::EPERM, Errno::ENOSYS, Errno::ENOSPC] {
            assert!(LayerError::new(Layer::UserNamespace, "unshare", errno).means_absent());
        }
    }
}
