//! Why no namespace or mount can be made: filters, settings, security modules, chroots.

use caps::Capability;
use dsh_facts::{Cause, Layer};
use dsh_kernel::refusal::Call;
use nix::errno::Errno;
use nix::sched::CloneFlags;

use crate::causes::{Refusal, UNFILTERED, known, needs, possible};
use crate::error::errno_name;

const MAPPED: &str = "Docker and Podman: --cap-add SETUID --cap-add SETGID --cap-add SETFCAP; \
     Kubernetes: securityContext.capabilities.add; or run dsh-run as an ordinary user";
const UNCOVERED: &str = "Podman: --security-opt unmask=ALL; Docker: --security-opt \
     systempaths=unconfined; Kubernetes: securityContext.procMount: Unmasked with hostUsers: false";
const NO_APPARMOR: &str = "Docker and Podman: --security-opt apparmor=unconfined; Kubernetes: \
     securityContext.appArmorProfile.type: Unconfined";
const NO_SELINUX: &str = "Docker and Podman: --security-opt label=disable; Kubernetes: \
     securityContext.seLinuxOptions.type: spc_t";
const OUT_OF_CHROOT: &str = "run dsh-run outside the chroot";

impl Refusal<'_> {
    /// Why one of these steps is refused; where it only needs another, what else is in its way.
    pub(super) fn namespaces(&self, step: Layer) -> Vec<Cause> {
        let mut causes = Vec::new();
        if step == Layer::PidNamespace {
            causes.extend(self.covered_proc());
        }
        if needs(self.host, step).is_some() {
            return causes;
        }
        causes.extend(self.filter(step));
        causes.extend(self.capabilities(step));
        causes.extend(self.limit(step));
        causes.extend(self.unprivileged(step));
        causes.extend(self.chroot(step));
        causes.extend(self.label(causes.is_empty()));
        if causes.iter().all(|cause| cause.tell.is_some()) {
            causes.extend(self.unknown(step));
        }
        causes
    }

    pub(super) fn namespace_lock(&self) -> Vec<Cause> {
        if needs(self.host, Layer::NamespaceLock).is_some() {
            return Vec::new();
        }
        vec![known(
            "user.max_user_namespaces of a new user namespace cannot be set",
            "none is needed: the seccomp filter refuses new namespaces instead",
        )]
    }

    /// A filter around this process that refuses the call.
    fn filter(&self, step: Layer) -> Option<Cause> {
        let name = self.error.step.as_str();
        // Ids that cannot be mapped are no call yet; the one that they are for may be refused too.
        let name = if step == Layer::UserNamespace { "unshare" } else { name };
        let call = call_of(step, name).filter(|_| self.evidence.filter)?;
        let errno = (self.evidence.filtered)(call)?;
        let by = format!("a system call filter around dsh-run answers {name} with");
        Some(known(format!("{by} {}", errno_name(errno)), UNFILTERED))
    }

    fn capabilities(&self, step: Layer) -> Option<Cause> {
        let unmapped = step == Layer::UserNamespace && self.host.caller.id_map().is_err();
        unmapped.then(|| {
            let cause = "root has not all of SETUID, SETGID and SETFCAP here, so its ids cannot be \
                         mapped";
            known(cause, MAPPED)
        })
    }

    /// A limit that is 0 or used up.
    fn limit(&self, step: Layer) -> Option<Cause> {
        let name = match (step, self.error.step.as_str()) {
            (Layer::UserNamespace, _) => "user.max_user_namespaces",
            (Layer::PidNamespace, "clone") => "user.max_pid_namespaces",
            (Layer::IpcNamespace, _) => "user.max_ipc_namespaces",
            (Layer::Network, _) => "user.max_net_namespaces",
            (_, "clone") => "user.max_mnt_namespaces",
            _ => "fs.mount-max",
        };
        if let Some(cause) = self.setting(name, "0", "15000") {
            return Some(cause);
        }
        let now = self.evidence.sysctls.get(name)?;
        self.is(&[Errno::ENOSPC, Errno::EUSERS]).then(|| {
            known(
                format!("{name} is used up, here ({now}) or in a user namespace around this one"),
                format!("a larger {name} by sysctl -w, here or outside the container or sandbox"),
            )
        })
    }

    /// What a setting forbids to callers without CAP_SYS_ADMIN.
    fn unprivileged(&self, step: Layer) -> Vec<Cause> {
        let concerned = matches!(step, Layer::UserNamespace | Layer::Mount);
        if !concerned || self.host.caller.has(Capability::CAP_SYS_ADMIN) {
            return Vec::new();
        }
        let mut causes = Vec::new();
        causes.extend(self.setting("kernel.unprivileged_userns_clone", "0", "1"));
        // A profile that dsh-run has already is what decides then.
        if self.evidence.label.as_deref().is_none_or(|label| label == "unconfined") {
            let name = "kernel.apparmor_restrict_unprivileged_userns";
            causes.extend(self.setting(name, "1", "0").map(|cause| Cause {
                remedy: format!("{}; or for dsh-run alone: {}", cause.remedy, self.profile()),
                ..cause
            }));
        }
        causes
    }

    /// A setting with this value, and the command that gives it another.
    fn setting(&self, name: &str, wrong: &str, right: &str) -> Option<Cause> {
        let now = self.evidence.sysctls.get(name)?;
        (now == wrong).then(|| {
            known(format!("{name} is {now}"), format!("sysctl -w {name}={right} (now {now})"))
        })
    }

    /// The commands that let this program make user namespaces, under AppArmor 4.
    fn profile(&self) -> String {
        let path = self.evidence.program.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+ ".contains(c);
        let path = if path.chars().all(plain) { &*path } else { "/path/of/dsh-run" };
        format!(
            "echo 'abi <abi/4.0>, profile dsh-run \"{path}\" flags=(unconfined) {{ userns, }}' | \
             sudo tee /etc/apparmor.d/dsh-run && sudo apparmor_parser -r /etc/apparmor.d/dsh-run"
        )
    }

    fn chroot(&self, step: Layer) -> Option<Cause> {
        let cause = match step {
            Layer::UserNamespace if !self.evidence.root_is_a_mount => {
                "dsh-run was started in a chroot, where the kernel makes no user namespaces"
            }
            Layer::Mount if self.is(&[Errno::EINVAL]) => {
                "the root directory is not the root of a mount, as in a chroot"
            }
            _ => return None,
        };
        Some(known(cause, OUT_OF_CHROOT))
    }

    fn covered_proc(&self) -> Option<Cause> {
        let covers = &self.evidence.proc_covers;
        let first = covers.first()?.display();
        let more =
            if covers.len() > 1 { format!(" and {} more", covers.len() - 1) } else { "".into() };
        let cause = format!(
            "/proc is covered in part ({first}{more}), and the kernel mounts no new one that would \
             show what is covered"
        );
        Some(known(cause, UNCOVERED))
    }

    /// A security module that confines this process. That it refuses shows by EACCES, with which
    /// the kernel itself does not answer these calls.
    fn label(&self, alone: bool) -> Option<Cause> {
        let label = self.evidence.label.as_deref().filter(|label| confines(label))?;
        let cause = format!("a security module confines dsh-run as {label}");
        let remedy = if label.contains(':') { NO_SELINUX } else { NO_APPARMOR };
        Some(if alone && self.is(&[Errno::EACCES]) {
            known(cause, remedy)
        } else {
            possible(cause, remedy, "the errno becomes EACCES once nothing else refuses")
        })
    }

    /// What is left where the kernel's state shows no cause.
    fn unknown(&self, step: Layer) -> Vec<Cause> {
        let call = &self.error.step;
        if step == Layer::UserNamespace && self.is(&[Errno::EINVAL, Errno::ENOSYS]) {
            let cause = "this kernel was built without user namespaces";
            return vec![known(cause, "a kernel with CONFIG_USER_NS=y")];
        }
        if self.is(&[Errno::ENOSYS]) {
            let cause = format!("this kernel ({}) lacks {call}", self.evidence.kernel);
            return vec![known(cause, "Linux 5.2 or later")];
        }
        let mut causes = vec![possible(
            format!("a security module, or the kernel's own rules, refuse {call}"),
            "what journalctl -k names; or the privileges of the container",
            "journalctl -k | grep -iE 'apparmor|avc|denied' has a line about dsh-run",
        )];
        if step == Layer::UserNamespace && self.is(&[Errno::EPERM]) {
            causes.push(possible(
                "dsh-run was started in a chroot, where the kernel makes no user namespaces",
                OUT_OF_CHROOT,
                "ls -di / /proc/1/root/ as root shows two numbers",
            ));
        }
        causes
    }
}

/// Whether a label takes anything from the process. AppArmor says so in parentheses; SELinux has
/// the type in the third field.
fn confines(label: &str) -> bool {
    let kind = label.split(':').nth(2);
    label.ends_with("(enforce)") || kind.is_some_and(|kind| !kind.starts_with("unconfined"))
}

/// The system call that the name of a step stands for.
fn call_of(step: Layer, name: &str) -> Option<Call> {
    let namespaces = match step {
        Layer::PidNamespace => CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID,
        Layer::IpcNamespace => CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS,
        Layer::Network => CloneFlags::CLONE_NEWNET,
        Layer::Mount => CloneFlags::CLONE_NEWNS,
        _ => CloneFlags::CLONE_NEWUSER,
    };
    match name {
        "unshare" => Some(Call::Unshare(namespaces)),
        "clone" => Some(Call::Clone(namespaces)),
        "open_tree" => Some(Call::OpenTree),
        "mount_setattr" => Some(Call::MountSetattr),
        "make private" | "remount" => Some(Call::Mount),
        name if name.starts_with("mount ") => Some(Call::Mount),
        _ => None,
    }
}
