//! What only privileges allow: taking capabilities back, and calls that act on the whole machine.
//! Each call that could do harm is made so that it fails after the permission check.

use crate::args::{number, path};
use crate::attempt::{Attempt, Outcome, Trail};
use crate::files::old;
use crate::sys::{Arg, NONE, call, words};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("acct", acct),
    ("capset", capset),
    ("chroot", chroot),
    ("core-limit", core_limit),
    ("iopl", iopl),
    ("reboot", reboot),
    ("setdomainname", setdomainname),
    ("swapon", swapon),
    ("syslog", syslog),
];

/// `capset CAPABILITY`: back into the effective and permitted sets.
fn capset(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let bit = 1_u64 << number(arguments, 0)?;
    // Version 3, pid 0; then effective, permitted, inheritable, the low halves before the high
    // ones.
    let header = words(&[0x2008_0522]);
    let (low, high) = (bit & 0xffff_ffff, bit >> 32);
    let sets = words(&[low | low << 32, high << 32, high]);
    trail.step("capset", call(libc::SYS_capset, vec![Arg::In(&header), Arg::In(&sets)]))?;
    Ok(())
}

/// `chroot PATH`
fn chroot(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("chroot", call(libc::SYS_chroot, vec![Arg::Path(&path)]))?;
    Ok(())
}

/// `core-limit`: core files again, up to one byte.
fn core_limit(trail: &mut Trail, _: &[String]) -> Outcome {
    let limit = words(&[1, 1]);
    let resource = Arg::Int(i64::from(libc::RLIMIT_CORE));
    let arguments = vec![NONE, resource, Arg::In(&limit), NONE];
    trail.step("prlimit64", call(libc::SYS_prlimit64, arguments))?;
    Ok(())
}

/// `acct PATH`: the kernel itself would write records to the file.
fn acct(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("acct", call(libc::SYS_acct, vec![Arg::Path(&path)]))?;
    Ok(())
}

/// `swapon PATH`: of a file without a swap header.
fn swapon(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let path = path(arguments, 0)?;
    trail.step("swapon", call(libc::SYS_swapon, vec![Arg::Path(&path), NONE]))?;
    Ok(())
}

/// `reboot`: with wrong magic numbers, which the kernel looks at after the capability.
fn reboot(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("reboot", call(libc::SYS_reboot, vec![NONE, NONE, NONE, NONE]))?;
    Ok(())
}

/// `setdomainname`: a name that is too long, which the kernel looks at after the capability.
fn setdomainname(trail: &mut Trail, _: &[String]) -> Outcome {
    let name = [b'x'; 128];
    let arguments = vec![Arg::In(&name), Arg::Int(128)];
    trail.step("setdomainname", call(libc::SYS_setdomainname, arguments))?;
    Ok(())
}

/// `syslog`: reads the kernel's messages.
fn syslog(trail: &mut Trail, _: &[String]) -> Outcome {
    let read_all = Arg::Int(3);
    let mut bytes = [0; 64];
    let arguments = vec![read_all, Arg::Out(&mut bytes), Arg::Int(64)];
    trail.step("syslog", call(libc::SYS_syslog, arguments))?;
    Ok(())
}

/// `iopl`: the ports of the machine.
fn iopl(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("iopl", call(old("iopl")?, vec![Arg::Int(3)]))?;
    Ok(())
}
