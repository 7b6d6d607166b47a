//! Why there is no Landlock, or no seccomp filter: what the kernel was built and booted with.

use std::ffi::OsStr;

use dsh_facts::Cause;
use nix::errno::Errno;

use crate::causes::{Refusal, UNFILTERED, known, possible};
use crate::host::PTRACE_SCOPE;

const BUILT: &str =
    "a kernel with CONFIG_SECURITY_LANDLOCK=y, and landlock in its boot parameter lsm=";
const UNFILTERED_LANDLOCK: &str = "a container engine of 2023 or later, or --security-opt \
     seccomp=unconfined";

impl Refusal<'_> {
    pub(super) fn landlock(&self) -> Vec<Cause> {
        let kernel = &self.evidence.kernel;
        if self.is(&[Errno::EOPNOTSUPP]) {
            let remedy = match &self.evidence.security_modules {
                Some(list) => format!("the boot parameter lsm=landlock,{list} (now {list})"),
                None => "landlock in the boot parameter lsm=, in front of what \
                         /sys/kernel/security/lsm has"
                    .to_owned(),
            };
            return vec![known("this kernel has Landlock, which was not enabled at boot", remedy)];
        }
        if self.is(&[Errno::E2BIG]) {
            return vec![known(
                "as many Landlock domains are nested around dsh-run as the kernel takes",
                "run dsh-run outside some of the sandboxes around it",
            )];
        }
        if !self.is(&[Errno::ENOSYS]) {
            // No kernel refuses to tell its ABI.
            return vec![known(
                "a system call filter around dsh-run refuses Landlock's calls",
                UNFILTERED_LANDLOCK,
            )];
        }
        if !self.evidence.kernel_at_least(5, 13) {
            let cause = format!("Linux 5.13 brought Landlock, and this is {kernel}");
            return vec![known(cause, format!("Linux 5.13 or later: {BUILT}"))];
        }
        let unbuilt = format!("this kernel ({kernel}) was built without Landlock");
        if !self.evidence.filter {
            return vec![known(unbuilt, BUILT)];
        }
        // A filter that does not know the call answers as a kernel without it does.
        let count = "grep -c ' landlock_' /proc/kallsyms says";
        vec![
            possible(unbuilt, BUILT, format!("{count} 0")),
            possible(
                "a system call filter around dsh-run does not know Landlock's calls",
                UNFILTERED_LANDLOCK,
                format!("{count} more than 0"),
            ),
        ]
    }

    pub(super) fn observer(&self) -> Vec<Cause> {
        if self.is(&[Errno::EBUSY]) {
            return vec![known(
                "a filter around dsh-run has a listener already, and the kernel allows one: another \
                 sandbox, a container's supervisor, or the init of WSL 2",
                "run dsh-run outside of it",
            )];
        }
        if self.error.path.as_deref() == Some(OsStr::new(PTRACE_SCOPE)) {
            return vec![known(
                "without a user namespace an observer would have to read the memory of processes \
                 that are not its children, which Yama refuses",
                "what brings back user namespaces; or sysctl -w kernel.yama.ptrace_scope=0",
            )];
        }
        if self.is(&[Errno::EPERM, Errno::EACCES]) {
            return vec![known("a system call filter around dsh-run refuses seccomp", UNFILTERED)];
        }
        vec![known(
            format!(
                "Linux 5.8 brought what an observer needs, and this is {}",
                self.evidence.kernel
            ),
            "Linux 5.8 or later, better 6.6 or later",
        )]
    }

    pub(super) fn seccomp(&self) -> Vec<Cause> {
        if self.is(&[Errno::EPERM, Errno::EACCES]) {
            return vec![known("a system call filter around dsh-run refuses seccomp", UNFILTERED)];
        }
        vec![known(
            "this kernel has no seccomp filters that answer with an errno",
            "Linux 4.14 or later with CONFIG_SECCOMP_FILTER=y",
        )]
    }
}
