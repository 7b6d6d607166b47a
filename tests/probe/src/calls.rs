//! Parts of the kernel that a command has no business with, and numbers that no filter table knows.

use crate::args::number;
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::sys::{Arg, NONE, call};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("add-key", add_key),
    ("bpf", bpf),
    ("finit-module", finit_module),
    ("init-module", init_module),
    ("int80", int80),
    ("io-uring-setup", io_uring_setup),
    ("ioctl", ioctl),
    ("kexec-load", kexec_load),
    ("keyctl", keyctl),
    ("perf-event-open", perf_event_open),
    ("request-key", request_key),
    ("syscall", syscall),
    ("userfaultfd", userfaultfd),
];

const USER_KEYRING: Arg<'static> = Arg::Int(-4);

/// `bpf`: makes an array map.
fn bpf(trail: &mut Trail, _: &[String]) -> Outcome {
    let map = [2_u32, 4, 4, 1].map(u32::to_ne_bytes).concat();
    let attributes = [map, vec![0; 112]].concat();
    let arguments = vec![NONE, Arg::In(&attributes), Arg::Int(128)];
    trail.step("bpf", call(libc::SYS_bpf, arguments))?;
    Ok(())
}

/// `perf-event-open`: a software clock of the probe itself, the most harmless of all events.
fn perf_event_open(trail: &mut Trail, _: &[String]) -> Outcome {
    let head = [1_u32, 112].map(u32::to_ne_bytes).concat();
    let attributes = [head, vec![0; 104]].concat();
    let arguments = vec![Arg::In(&attributes), NONE, Arg::Int(-1), Arg::Int(-1), NONE];
    trail.step("perf_event_open", call(libc::SYS_perf_event_open, arguments))?;
    Ok(())
}

/// `userfaultfd`: user mode only, which needs no privilege.
fn userfaultfd(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("userfaultfd", call(libc::SYS_userfaultfd, vec![Arg::Int(1)]))?;
    Ok(())
}

/// `io-uring-setup`
fn io_uring_setup(trail: &mut Trail, _: &[String]) -> Outcome {
    let mut parameters = [0; 120];
    let arguments = vec![Arg::Int(1), Arg::Out(&mut parameters)];
    trail.step("io_uring_setup", call(libc::SYS_io_uring_setup, arguments))?;
    Ok(())
}

/// `keyctl`: looks up the caller's keyring.
fn keyctl(trail: &mut Trail, _: &[String]) -> Outcome {
    trail.step("keyctl", call(libc::SYS_keyctl, vec![NONE, USER_KEYRING, Arg::Int(1)]))?;
    Ok(())
}

/// `add-key`: a key in the caller's keyring would outlive the sandbox.
fn add_key(trail: &mut Trail, _: &[String]) -> Outcome {
    let process_keyring = Arg::Int(-2);
    let (kind, name) = (Arg::Path(c"user"), Arg::Path(c"dsh-probe"));
    let arguments = vec![kind, name, Arg::In(b"x"), Arg::Int(1), process_keyring];
    trail.step("add_key", call(libc::SYS_add_key, arguments))?;
    Ok(())
}

/// `request-key`
fn request_key(trail: &mut Trail, _: &[String]) -> Outcome {
    let arguments = vec![Arg::Path(c"user"), Arg::Path(c"dsh-probe"), NONE, NONE];
    trail.step("request_key", call(libc::SYS_request_key, arguments))?;
    Ok(())
}

/// `kexec-load`: no segments, which would unload.
fn kexec_load(trail: &mut Trail, _: &[String]) -> Outcome {
    let flags_that_do_not_exist = Arg::Int(0x4000);
    let arguments = vec![NONE, NONE, NONE, flags_that_do_not_exist];
    trail.step("kexec_load", call(libc::SYS_kexec_load, arguments))?;
    Ok(())
}

/// `init-module`: an image that is none.
fn init_module(trail: &mut Trail, _: &[String]) -> Outcome {
    let arguments = vec![Arg::In(b"no"), Arg::Int(2), Arg::Path(c"")];
    trail.step("init_module", call(libc::SYS_init_module, arguments))?;
    Ok(())
}

/// `finit-module`: of a descriptor that is none.
fn finit_module(trail: &mut Trail, _: &[String]) -> Outcome {
    let arguments = vec![Arg::Int(-1), Arg::Path(c""), NONE];
    trail.step("finit_module", call(libc::SYS_finit_module, arguments))?;
    Ok(())
}

/// `ioctl FD REQUEST`: with one byte as its argument, and bits above the 32 that the kernel reads.
fn ioctl(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let (descriptor, request) = (number(arguments, 0)?, number(arguments, 1)?);
    let argument = *b"x\0\0\0\0\0\0\0";
    let arguments = vec![Arg::Int(descriptor), Arg::Int(request), Arg::In(&argument)];
    trail.step("ioctl", call(libc::SYS_ioctl, arguments))?;
    Ok(())
}

/// `syscall NUMBER`: a call by its number, without arguments.
fn syscall(trail: &mut Trail, arguments: &[String]) -> Outcome {
    trail.step("syscall", call(number(arguments, 0)?, Vec::new()))?;
    Ok(())
}

/// `int80 NUMBER`: a call of the 32-bit table, made from a 64-bit program.
#[cfg(target_arch = "x86_64")]
fn int80(trail: &mut Trail, arguments: &[String]) -> Outcome {
    use nix::errno::Errno;

    let number = i32::try_from(number(arguments, 0)?)
        .map_err(|_| Stop::Misuse("not a number of the 32-bit table".to_owned()))?;
    let mut result = number;
    // SAFETY: the suite passes getpid, which takes no arguments and touches no memory; the 32-bit
    // entry clobbers the registers named here and nothing else.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    let made = if result < 0 { Err(Errno::from_raw(-result)) } else { Ok(result) };
    trail.step("int80", made)?;
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn int80(_: &mut Trail, _: &[String]) -> Outcome {
    Err(Stop::Misuse("int 0x80 exists on x86_64 only".to_owned()))
}
