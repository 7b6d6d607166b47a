//! What the kernel shows of the reasons for which it refuses a step.
//!
//! Only files of the kernel's own file systems are read: they cannot block, whatever file server
//! has gone silent.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dsh_kernel::refusal::{Call, filtered};
use nix::errno::Errno;

use crate::mountinfo;

/// The state of the kernel around this process, as far as a remedy can depend on it.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Settings by their sysctl name; those that this kernel lacks are absent.
    pub(crate) sysctls: BTreeMap<&'static str, String>,
    /// Whether a system call filter is around this process.
    pub(crate) filter: bool,
    /// The errno with which that filter refuses a call.
    pub(crate) filtered: fn(Call) -> Option<Errno>,
    /// How a security module has labelled this process, such as `docker-default (enforce)`.
    pub(crate) label: Option<String>,
    /// Security modules that were enabled at boot.
    pub(crate) security_modules: Option<String>,
    /// Mounts that cover parts of /proc.
    pub(crate) proc_covers: Vec<PathBuf>,
    /// Whether the root directory is the root of a mount.
    pub(crate) root_is_a_mount: bool,
    /// This program.
    pub(crate) program: PathBuf,
}

/// Settings that keep namespaces and mounts from being made.
const SYSCTLS: [&str; 9] = [
    "fs.mount-max",
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.unprivileged_userns_clone",
    "user.max_ipc_namespaces",
    "user.max_mnt_namespaces",
    "user.max_net_namespaces",
    "user.max_pid_namespaces",
    "user.max_user_namespaces",
    "user.max_uts_namespaces",
];

/// File systems whose place in /proc is empty: they cover nothing, and hosts mount them there.
const AT_HOME_IN_PROC: [&str; 2] = ["binfmt_misc", "nfsd"];

impl Evidence {
    /// Looks.
    pub(crate) fn gather() -> Self {
        let mounts = mountinfo::read().unwrap_or_default();
        let covers = mounts.iter().filter(|mount| {
            mount.point.starts_with("/proc")
                && mount.point != Path::new("/proc")
                && !AT_HOME_IN_PROC.contains(&mount.kind.as_str())
        });
        Self {
            kernel: kernel_release(),
            sysctls: SYSCTLS.iter().filter_map(|name| Some((*name, sysctl(name)?))).collect(),
            filter: read("/proc/self/status")
                .is_some_and(|status| status.lines().any(|line| line == "Seccomp:\t2")),
            filtered,
            label: read("/proc/self/attr/apparmor/current")
                .or_else(|| read("/proc/self/attr/current")),
            security_modules: read("/sys/kernel/security/lsm").or_else(boot_parameter_lsm),
            proc_covers: covers.map(|mount| mount.point.clone()).collect(),
            root_is_a_mount: mounts.iter().any(|mount| mount.point == Path::new("/")),
            program: std::env::current_exe().unwrap_or_else(|_| "/usr/bin/dsh-run".into()),
        }
    }

    /// Whether the kernel has this release or a later one.
    pub(crate) fn kernel_at_least(&self, major: u32, minor: u32) -> bool {
        at_least(&self.kernel, major, minor)
    }
}

/// The kernel's release, such as `6.12.9-amd64`.
pub(crate) fn kernel_release() -> String {
    read("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Whether a release is this one or a later one.
pub(crate) fn at_least(release: &str, major: u32, minor: u32) -> bool {
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let running = (numbers.next().flatten(), numbers.next().flatten());
    matches!(running, (Some(a), Some(b)) if (a, b) >= (major, minor))
}

fn sysctl(name: &str) -> Option<String> {
    read(Path::new("/proc/sys").join(name.replace('.', "/")))
}

/// The modules that the boot loader asked for.
fn boot_parameter_lsm() -> Option<String> {
    let line = read("/proc/cmdline")?;
    line.split_whitespace().find_map(|word| word.strip_prefix("lsm=")).map(str::to_owned)
}

/// A file's text without what ends it; none where there is none.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches(['\n', '\0']);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        for (release, is) in
            [("6.14.0", true), ("6.14-rc1", true), ("10.1", true), ("6.9.12", false), ("", false)]
        {
            assert_eq!(at_least(release, 6, 14), is, "{release}");
        }
    }

    #[test]
    fn a_test_has_a_root_and_a_kernel() {
        let evidence = Evidence::gather();
        assert!(evidence.kernel_at_least(3, 0), "{evidence:?}");
        assert!(evidence.program.is_absolute());
    }
}
