//! Where the facts of a run go: a file that is replaced by rename at the end, or a stream of lines.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use dsh_facts::{Denial, Event, Facts, VERSION};
use dsh_sandbox::{Plan, Request, RequestError, SandboxError, check_governing_file, enforcement};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, OFlag, fcntl, open, openat, renameat};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use crate::arguments::RunOptions;
use crate::error::{Error, errno};

const MODE: Mode = Mode::from_bits_truncate(0o644);
const CREATE: OFlag =
    OFlag::O_CREAT.union(OFlag::O_EXCL).union(OFlag::O_WRONLY).union(OFlag::O_CLOEXEC);

pub(crate) enum FactsOutput {
    None,
    File(FactsFile),
    Stream(File),
}

/// A file that does not exist until the run has ended: an unnamed one beside it proves before the
/// run that it can be written, and leaves nothing behind if dsh-run is killed.
pub(crate) struct FactsFile {
    path: PathBuf,
    /// Opened once: whoever changes a name on the way to it changes nothing.
    directory: OwnedFd,
    name: OsString,
    /// None where the file system has no unnamed files.
    unnamed: Option<OwnedFd>,
}

impl FactsOutput {
    /// Opens the output before anything runs.
    pub(crate) fn open(options: &RunOptions, request: &Request) -> Result<Self, Error> {
        if let Some(path) = &options.facts {
            // Any other error is a request that cannot be carried out, of which the facts tell.
            if let Err(error @ RequestError::GoverningFile { .. }) =
                check_governing_file("facts file", path, request)
            {
                return Err(SandboxError::from(error).into());
            }
            return FactsFile::open(path).map(Self::File);
        }
        if let Some(number) = options.facts_fd {
            let failed = |errno| Error::FactsDescriptor { number, errno };
            let copy = dsh_sandbox::duplicate_descriptor(number).map_err(failed)?;
            let flags = fcntl(&copy, FcntlArg::F_GETFL).map_err(failed)?;
            if OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE == OFlag::O_RDONLY {
                return Err(failed(Errno::EBADF));
            }
            check_stream(&copy, number, request)?;
            return Ok(Self::Stream(File::from(copy)));
        }
        Ok(Self::None)
    }

    /// The command is confined and about to be executed.
    pub(crate) fn started(&mut self, plan: &Plan, layers: &[dsh_facts::LayerFact]) {
        if let Self::Stream(stream) = self {
            let event = Event::Started {
                version: VERSION,
                mode: plan.mode,
                network: plan.network,
                enforcement: enforcement(plan, layers),
            };
            line(stream, &event);
        }
    }

    /// Something was denied for the first time.
    pub(crate) fn denied(&mut self, denial: &Denial) {
        if let Self::Stream(stream) = self {
            line(stream, &Event::Denial(denial.clone()));
        }
    }

    /// The command has ended.
    pub(crate) fn ended(self, facts: Facts) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::File(file) => file.write(&facts),
            Self::Stream(mut stream) => {
                line(&mut stream, &Event::Exit(Box::new(facts)));
                Ok(())
            }
        }
    }

    /// The command did not run.
    pub(crate) fn refused(self, facts: Facts) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::File(file) => file.write(&facts),
            Self::Stream(mut stream) => {
                line(&mut stream, &Event::Refused(Box::new(facts)));
                Ok(())
            }
        }
    }
}

/// A stream that the command writes too, or a file that it could replace, is no record of the run.
fn check_stream(stream: &OwnedFd, number: i32, request: &Request) -> Result<(), Error> {
    let failed = |errno| Error::FactsDescriptor { number, errno };
    let stat = fstat(stream).map_err(failed)?;
    let identity = |stat: &FileStat| (stat.st_dev, stat.st_ino);
    let shared = [fstat(std::io::stdin()), fstat(std::io::stdout()), fstat(std::io::stderr())]
        .into_iter()
        .flatten()
        .any(|other| identity(&other) == identity(&stat));
    let is_null = stat.st_rdev != 0;
    if shared && !is_null {
        return Err(failed(Errno::EADDRINUSE));
    }
    let name = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd()));
    if let Ok(path) = name
        && path.is_absolute()
        && let Err(error @ RequestError::GoverningFile { .. }) =
            check_governing_file("facts file", &path, request)
    {
        return Err(SandboxError::from(error).into());
    }
    Ok(())
}

/// Writes one line. A reader that has gone away, or does not read, does not change what becomes of
/// the command: its line is lost.
fn line(stream: &mut File, event: &Event) {
    const PATIENCE: u16 = 1000; // milliseconds
    let Ok(mut text) = serde_json::to_vec(event) else { return };
    text.push(b'\n');
    let mut ready = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut ready, PATIENCE) == Ok(1) {
        let _ = stream.write_all(&text);
    }
}

impl FactsFile {
    fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno| Error::File {
            role: "facts file",
            path: path.to_owned(),
            errno,
            remedy: "name a regular file in a directory that can be written, or use --facts-fd",
        };
        if let Ok(existing) = path.symlink_metadata() {
            if existing.is_dir() {
                return Err(failed(Errno::EISDIR));
            }
            if leads_to_no_file(path) {
                // Replacing a device, or a link such as /dev/stdout, by rename is not what anybody
                // means.
                return Err(failed(Errno::EINVAL));
            }
        }
        let Some(name) = path.file_name() else { return Err(failed(Errno::EISDIR)) };
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory =
            open(parent.unwrap_or(Path::new(".")), flags, Mode::empty()).map_err(failed)?;
        let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let unnamed = match openat(&directory, ".", flags, MODE) {
            Ok(file) => Some(file),
            // A file system without unnamed files.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => {
                let name = temporary_name();
                openat(&directory, name.as_str(), CREATE, MODE).map_err(failed)?;
                unlinkat(&directory, name.as_str(), UnlinkatFlags::NoRemoveDir).map_err(failed)?;
                None
            }
            Err(errno) => return Err(failed(errno)),
        };
        Ok(Self { path: path.to_owned(), directory, name: name.to_owned(), unnamed })
    }

    fn write(self, facts: &Facts) -> Result<(), Error> {
        let failed = |errno| Error::File {
            role: "facts file",
            path: self.path.clone(),
            errno,
            remedy: "the command has ended, but its facts are lost",
        };
        let mut text = serde_json::to_vec_pretty(facts).map_err(|_| failed(Errno::EINVAL))?;
        text.push(b'\n');
        let temporary = temporary_name();
        let temporary = temporary.as_str();
        let mut file = File::from(match self.unnamed {
            Some(file) => file,
            None => openat(&self.directory, temporary, CREATE, MODE).map_err(failed)?,
        });
        file.write_all(&text).map_err(|error| failed(errno(&error)))?;
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        let follow = AtFlags::AT_SYMLINK_FOLLOW;
        match linkat(AT_FDCWD, unnamed.as_str(), &self.directory, temporary, follow) {
            // It had a name already.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let name = self.name.as_os_str();
        renameat(&self.directory, temporary, &self.directory, name).map_err(|errno| {
            let _ = unlinkat(&self.directory, temporary, UnlinkatFlags::NoRemoveDir);
            failed(errno)
        })
    }
}

/// Whether a name leads to a device, a pipe or an open descriptor.
fn leads_to_no_file(path: &Path) -> bool {
    let special = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    let descriptor = path.read_link().is_ok_and(|target| target.starts_with("/proc"));
    special || descriptor
}

/// The name that the file has for the moment between being written and being renamed.
fn temporary_name() -> String {
    format!(".dsh-facts-{}", std::process::id())
}
