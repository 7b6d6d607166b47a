//! `--script`: bash reads a file that the sandbox may not show, such as one in the host's /tmp, or
//! standard input. Its content travels as an anonymous file under a descriptor of its own.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use dsh_sandbox::{Request, SCRIPT_DESCRIPTOR, SandboxError, check_governing_file};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, errno, system};

/// Reads the script and makes the request run it.
pub(crate) fn prepare(path: &Path, request: &mut Request) -> Result<OwnedFd, Error> {
    let failed = |errno| Error::File {
        role: "script",
        path: path.to_owned(),
        errno,
        remedy: "name a file that can be read, or - for standard input",
    };
    let mut content = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut content).map_err(|error| failed(errno(&error)))?;
    } else {
        check_governing_file("script", path, request).map_err(SandboxError::from)?;
        let mut file = File::open(path).map_err(|error| failed(errno(&error)))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(failed(Errno::EISDIR));
        }
        file.read_to_end(&mut content).map_err(|error| failed(errno(&error)))?;
    }
    let name = "dsh-script";
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut script = File::from(memfd_create(name, flags).map_err(system("memfd_create"))?);
    script
        .write_all(&content)
        .and_then(|()| script.rewind())
        .map_err(|error| system("write the script")(errno(&error)))?;
    // Nobody changes what is being run, the command included.
    let seals = SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_SEAL;
    fcntl(&script, FcntlArg::F_ADD_SEALS(seals)).map_err(system("F_ADD_SEALS"))?;
    let arguments = std::mem::take(&mut request.command);
    request.command = vec!["bash".into(), format!("/dev/fd/{SCRIPT_DESCRIPTOR}").into()];
    request.command.extend(arguments);
    Ok(script.into())
}
