//! Arguments in memory that is not there, or ends where they do.

use nix::errno::Errno;

use crate::args::{path, text};
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::memory::Edge;
use crate::sys::{Arg, CWD, NONE, call};

pub(crate) const ATTEMPTS: &[Attempt] =
    &[("bad-pointers", bad_pointers), ("long-path", long_path), ("page-end", page_end)];

/// No process has anything there.
const NOWHERE: Arg<'static> = Arg::Int(1);
const CREATE: i64 = (libc::O_WRONLY | libc::O_CREAT) as i64;

/// `bad-pointers PATH`: calls that name files or sockets, with names that cannot be read.
fn bad_pointers(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let socket = call(libc::SYS_socket, vec![Arg::Int(1), Arg::Int(1), NONE]);
    let socket = trail.step("socket", socket)?;
    let good = || Arg::Path(&path);
    let calls: [(libc::c_long, Vec<Arg<'_>>); 12] = [
        (libc::SYS_openat, vec![CWD, NOWHERE, Arg::Int(CREATE), NONE]),
        (libc::SYS_openat2, vec![CWD, good(), NOWHERE, Arg::Int(24)]),
        (libc::SYS_mkdirat, vec![CWD, NOWHERE, NONE]),
        (libc::SYS_mknodat, vec![CWD, NOWHERE, Arg::Int(0o100_600), NONE]),
        (libc::SYS_unlinkat, vec![CWD, NOWHERE, NONE]),
        (libc::SYS_renameat2, vec![CWD, good(), CWD, NOWHERE, NONE]),
        (libc::SYS_renameat2, vec![CWD, NOWHERE, CWD, good(), NONE]),
        (libc::SYS_truncate, vec![NOWHERE, NONE]),
        (libc::SYS_fchmodat, vec![CWD, NOWHERE, NONE]),
        (libc::SYS_utimensat, vec![CWD, good(), NOWHERE, NONE]),
        (libc::SYS_setxattr, vec![good(), NOWHERE, NONE, NONE, NONE]),
        (libc::SYS_connect, vec![Arg::Int(socket), NOWHERE, Arg::Int(16)]),
    ];
    let ends = calls.map(|(number, arguments)| match call(number, arguments) {
        Ok(_) => "ok".to_owned(),
        Err(errno) => format!("{errno:?}"),
    });
    trail.detail(ends.join(" "));
    Ok(())
}

/// Makes a file.
fn create(path: Arg<'_>) -> Result<i64, Errno> {
    call(libc::SYS_openat, vec![CWD, path, Arg::Int(CREATE), Arg::Int(0o600)])
}

/// `long-path DIR NAME LENGTH`: a file of that name by a path of that length.
fn long_path(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (directory, name) = (text(arguments, 0)?, text(arguments, 1)?);
    let length = usize::try_from(crate::args::number(arguments, 2)?).unwrap_or_default();
    let missing = length.saturating_sub(directory.len() + name.len());
    let path = format!("{directory}{}{name}", "/".repeat(missing));
    let path = std::ffi::CString::new(path).map_err(|error| Stop::Misuse(error.to_string()))?;
    trail.step("openat", create(Arg::Path(&path)))?;
    Ok(())
}

/// `page-end PATH`: a path that ends with the last byte before memory that is not there, and then
/// one without an end before it.
fn page_end(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    let mut edge = Edge::map().map_err(|errno| Stop::Misuse(format!("no memory: {errno}")))?;
    let ends = [path.as_bytes_with_nul(), path.as_bytes()]
        .map(|bytes| create(Arg::Int(edge.put(bytes).cast_signed())).map(|_| ()));
    trail.detail(format!("{:?}, {:?}", ends[0], ends[1]));
    Ok(())
}
