//! System V and POSIX message objects, which have names of their own beside the file system's.

use crate::args::{flags, number, path};
use crate::attempt::{Attempt, Outcome, Trail};
use crate::files::OPEN_FLAGS;
use crate::sys::{Arg, NONE, call};

pub(crate) const ATTEMPTS: &[Attempt] =
    &[("mq-open", mq_open), ("shmat", shmat), ("shmctl-remove", shmctl_remove), ("shmget", shmget)];

/// `shmget KEY`
fn shmget(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let key = number(arguments, 0)?;
    trail.step("shmget", call(libc::SYS_shmget, vec![Arg::Int(key), NONE, NONE]))?;
    Ok(())
}

/// `shmat ID`
fn shmat(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let id = number(arguments, 0)?;
    trail.step("shmat", call(libc::SYS_shmat, vec![Arg::Int(id), NONE, NONE]))?;
    Ok(())
}

/// `shmctl-remove ID`
fn shmctl_remove(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let id = number(arguments, 0)?;
    let remove = Arg::Int(i64::from(libc::IPC_RMID));
    trail.step("shmctl", call(libc::SYS_shmctl, vec![Arg::Int(id), remove, NONE]))?;
    Ok(())
}

/// `mq-open NAME FLAGS`: the kernel takes the name without its slash.
fn mq_open(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (name, flags) = (path(arguments, 0)?, flags(arguments, 1, OPEN_FLAGS)?);
    let arguments = vec![Arg::Path(&name), Arg::Int(flags), NONE, NONE];
    trail.step("mq_open", call(libc::SYS_mq_open, arguments))?;
    Ok(())
}
