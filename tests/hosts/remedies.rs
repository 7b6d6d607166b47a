//! What `dsh-run doctor` must say of a refused step: on which host, and how it is remedied.

use dsh_facts::Layer;

/// A cause that the report of a host must have.
pub(crate) struct Expected {
    /// The host, by its name in the table.
    pub(crate) host: &'static str,
    pub(crate) step: Layer,
    /// Whether the kernel's state shows that it is so.
    pub(crate) known: bool,
    /// A part of the cause.
    pub(crate) cause: &'static str,
    /// Parts of the remedy.
    pub(crate) remedy: &'static [&'static str],
}

const fn known(
    host: &'static str,
    step: Layer,
    cause: &'static str,
    remedy: &'static [&'static str],
) -> Expected {
    Expected { host, step, known: true, cause, remedy }
}

const fn possible(
    host: &'static str,
    step: Layer,
    cause: &'static str,
    remedy: &'static [&'static str],
) -> Expected {
    Expected { host, step, known: false, cause, remedy }
}

/// How a container is told to let the calls through.
const SECCOMP: &[&str] =
    &["--security-opt seccomp=unconfined", "securityContext.seccompProfile.type: Unconfined"];
/// How it is told to show all of /proc.
const PROC: &[&str] = &[
    "--security-opt unmask=ALL",
    "--security-opt systempaths=unconfined",
    "procMount: Unmasked with hostUsers: false",
];
const UNSHARE_FILTERED: &str = "a system call filter around dsh-run answers unshare with EPERM";
const PROC_COVERED: &str = "/proc is covered in part";

/// By host; a host may have more causes.
pub(crate) const EXPECTED: &[Expected] = &[
    known("docker-user", Layer::UserNamespace, UNSHARE_FILTERED, SECCOMP),
    known("docker-user", Layer::PidNamespace, PROC_COVERED, PROC),
    known("docker-root", Layer::UserNamespace, UNSHARE_FILTERED, SECCOMP),
    known("docker-root", Layer::PidNamespace, PROC_COVERED, PROC),
    known("no-user-namespaces", Layer::UserNamespace, UNSHARE_FILTERED, SECCOMP),
    known(
        "no-user-namespaces",
        Layer::UserNamespace,
        "kernel.unprivileged_userns_clone is 0",
        &["sysctl -w kernel.unprivileged_userns_clone=1 (now 0)"],
    ),
    known(
        "no-user-namespaces-left",
        Layer::UserNamespace,
        "user.max_user_namespaces is 0",
        &["sysctl -w user.max_user_namespaces=15000 (now 0)"],
    ),
    known(
        "root-without-capabilities",
        Layer::UserNamespace,
        "SETUID, SETGID and SETFCAP",
        &["--cap-add SETUID --cap-add SETGID --cap-add SETFCAP", "as an ordinary user"],
    ),
    known(
        "apparmor",
        Layer::Mount,
        "kernel.apparmor_restrict_unprivileged_userns is 1",
        &[
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (now 1)",
            "abi <abi/4.0>, profile dsh-run \"PROGRAM\" flags=(unconfined) { userns, }",
            "apparmor_parser -r /etc/apparmor.d/dsh-run",
        ],
    ),
    known("no-mounts", Layer::Mount, "answers open_tree with EACCES", SECCOMP),
    known("podman", Layer::PidNamespace, PROC_COVERED, PROC),
    known("podman", Layer::NamespaceLock, "cannot be set", &["none is needed"]),
    possible(
        "no-landlock",
        Layer::Landlock,
        "was built without Landlock",
        &["CONFIG_SECURITY_LANDLOCK=y"],
    ),
    possible(
        "no-landlock",
        Layer::Landlock,
        "a system call filter around dsh-run does not know Landlock's calls",
        &["a container engine of 2023 or later"],
    ),
    known(
        "landlock-not-enabled",
        Layer::Landlock,
        "was not enabled at boot",
        &["landlock", "boot parameter lsm="],
    ),
    known(
        "no-network-namespaces",
        Layer::Network,
        "user.max_net_namespaces is 0",
        &["sysctl -w user.max_net_namespaces=15000 (now 0)"],
    ),
];
