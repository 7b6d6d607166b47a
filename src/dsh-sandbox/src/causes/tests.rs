use std::collections::BTreeMap;

use caps::Capability;
use dsh_kernel::refusal::Call;

use super::*;
use crate::host::Caller;

/// A host that offers everything to an ordinary user.
fn host() -> Host {
    Host {
        caller: Caller::with(1000, []),
        user_namespace: Ok(()),
        mounts: Ok(()),
        pid_namespace: Ok(()),
        ipc_namespace: Ok(()),
        network: Ok(()),
        namespace_lock: Ok(()),
        landlock: Ok(7),
        seccomp: Ok(()),
        observer: Ok(()),
    }
}

/// A host without user namespaces.
fn without_user_namespaces(call: &str, errno: Errno) -> Host {
    let error = LayerError::new(Layer::UserNamespace, call, errno);
    Host {
        user_namespace: Err(error.clone()),
        mounts: Err(error.clone()),
        pid_namespace: Err(error.clone()),
        ipc_namespace: Err(error.clone()),
        network: Err(error.clone()),
        namespace_lock: Err(error),
        ..host()
    }
}

/// A kernel that shows nothing.
fn evidence() -> Evidence {
    Evidence {
        kernel: "6.12.0".to_owned(),
        sysctls: BTreeMap::from([("user.max_user_namespaces", "62000".to_owned())]),
        filter: false,
        filtered: |_| None,
        label: None,
        security_modules: None,
        proc_covers: Vec::new(),
        root_is_a_mount: true,
        program: "/usr/bin/dsh-run".into(),
    }
}

fn filtered() -> Evidence {
    Evidence { filter: true, filtered: |_| Some(Errno::EPERM), ..evidence() }
}

fn with_sysctl(name: &'static str, value: &str) -> Evidence {
    let mut evidence = evidence();
    evidence.sysctls.insert(name, value.to_owned());
    evidence
}

/// The causes, each as `cause: remedy`, with a question mark where it is only possible.
#[track_caller]
fn check(host: &Host, evidence: &Evidence, step: Layer, expected: &[&str]) {
    let causes = of(host, evidence, step);
    let lines: Vec<String> = causes
        .iter()
        .map(|one| {
            let mark = if one.tell.is_some() { "?" } else { "" };
            format!("{mark}{}: {}", one.cause, one.remedy)
        })
        .collect();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        for part in expected.trim_start_matches('?').split('…') {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
        assert_eq!(line.starts_with('?'), expected.starts_with('?'), "{line}");
    }
}

#[test]
fn what_is_offered_has_no_cause_and_needs_nothing() {
    for step in Host::STEPS {
        assert_eq!(of(&host(), &filtered(), step), []);
        assert_eq!(needs(&host(), step), None);
    }
}

#[test]
fn a_filter_is_known_by_its_answer() {
    let host = without_user_namespaces("unshare", Errno::EPERM);
    check(&host, &filtered(), Layer::UserNamespace, &["unshare with EPERM…seccomp=unconfined"]);
    for step in [Layer::Mount, Layer::PidNamespace, Layer::NamespaceLock] {
        check(&host, &filtered(), step, &[]);
        assert_eq!(needs(&host, step), Some(Layer::UserNamespace));
    }
    // An answer that no filter gives is the kernel's: an old one lacks the call.
    let lacking = Evidence { filtered: |_| Some(Errno::ENOSYS), ..evidence() };
    let old = without_user_namespaces("unshare", Errno::ENOSYS);
    check(&old, &lacking, Layer::UserNamespace, &["built without…CONFIG_USER_NS=y"]);
}

#[test]
fn settings_are_named_with_their_values() {
    let limited = without_user_namespaces("unshare", Errno::ENOSPC);
    check(
        &limited,
        &with_sysctl("user.max_user_namespaces", "0"),
        Layer::UserNamespace,
        &["user.max_user_namespaces is 0: sysctl -w user.max_user_namespaces=15000 (now 0)"],
    );
    check(
        &limited,
        &evidence(),
        Layer::UserNamespace,
        &["used up, here (62000)…a larger user.max_user_namespaces"],
    );
    let refused = without_user_namespaces("unshare", Errno::EPERM);
    check(
        &refused,
        &with_sysctl("kernel.unprivileged_userns_clone", "0"),
        Layer::UserNamespace,
        &["sysctl -w kernel.unprivileged_userns_clone=1 (now 0)"],
    );
    let mut stacked = with_sysctl("kernel.unprivileged_userns_clone", "0");
    (stacked.filter, stacked.filtered) = (true, |_| Some(Errno::EPERM));
    check(&refused, &stacked, Layer::UserNamespace, &["filter", "unprivileged_userns_clone"]);
}

#[test]
fn settings_that_bind_others_are_no_cause() {
    let privileged = Host {
        caller: Caller::with(1000, [Capability::CAP_SYS_ADMIN]),
        ..without_user_namespaces("unshare", Errno::EACCES)
    };
    let restricted = with_sysctl("kernel.apparmor_restrict_unprivileged_userns", "1");
    check(&privileged, &restricted, Layer::UserNamespace, &["?a security module"]);
}

#[test]
fn ubuntu_restricts_by_apparmor() {
    const SETTING: &str = "kernel.apparmor_restrict_unprivileged_userns";
    let refused = without_user_namespaces("write", Errno::EACCES);
    let restricted = with_sysctl(SETTING, "1");
    let remedy = "restrict_unprivileged_userns=0 (now 1)…abi <abi/4.0>, profile dsh-run \
                  \"/usr/bin/dsh-run\" flags=(unconfined) { userns, }…apparmor_parser -r";
    check(&refused, &restricted, Layer::UserNamespace, &[remedy]);
    let odd = Evidence { program: "/o'dd".into(), ..with_sysctl(SETTING, "1") };
    check(&refused, &odd, Layer::UserNamespace, &["\"/path/of/dsh-run\""]);
    let unconfined = Evidence { label: Some("unconfined".to_owned()), ..restricted };
    check(&refused, &unconfined, Layer::UserNamespace, &[remedy]);
    // Under a profile of its own the setting does not decide.
    let own = Evidence { label: Some("x (enforce)".to_owned()), ..with_sysctl(SETTING, "1") };
    check(&refused, &own, Layer::UserNamespace, &["as x (enforce)…apparmor=unconfined"]);
}

#[test]
fn a_security_module_is_known_by_eacces() {
    let label = |label: &str| Evidence { label: Some(label.to_owned()), ..evidence() };
    let mounts =
        |errno| Host { mounts: Err(LayerError::new(Layer::Mount, "mount tmpfs", errno)), ..host() };
    let docker = label("docker-default (enforce)");
    check(&mounts(Errno::EACCES), &docker, Layer::Mount, &["docker-default…apparmor=unconfined"]);
    check(
        &mounts(Errno::EPERM),
        &docker,
        Layer::Mount,
        &["?a security module confines dsh-run as docker-default", "?refuse mount tmpfs"],
    );
    let selinux = label("system_u:system_r:container_t:s0:c1,c2");
    check(&mounts(Errno::EACCES), &selinux, Layer::Mount, &["container_t…label=disable"]);
    let free = label("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023");
    check(&mounts(Errno::EACCES), &free, Layer::Mount, &["?a security module, or the kernel"]);
}

#[test]
fn what_the_kernel_does_not_show_is_said_with_how_to_tell() {
    let host = without_user_namespaces("unshare", Errno::EPERM);
    let expected =
        ["?a security module, or the kernel's own rules, refuse unshare", "?in a chroot"];
    check(&host, &evidence(), Layer::UserNamespace, &expected);
}

#[test]
fn a_chroot_is_known_where_its_root_is_no_mount() {
    let in_chroot = Evidence { root_is_a_mount: false, ..evidence() };
    let user = without_user_namespaces("unshare", Errno::EPERM);
    check(&user, &in_chroot, Layer::UserNamespace, &["chroot…outside the chroot"]);
    let error = LayerError::new(Layer::Mount, "mount_setattr", Errno::EINVAL);
    let root = Host { mounts: Err(error), ..user };
    check(&root, &in_chroot, Layer::Mount, &["not the root of a mount…outside the chroot"]);
}

#[test]
fn a_covered_proc_is_named_also_behind_a_user_namespace() {
    let covered =
        Evidence { proc_covers: vec!["/proc/kcore".into(), "/proc/keys".into()], ..filtered() };
    let expected = ["/proc/kcore and 1 more…unmask=ALL…procMount: Unmasked with hostUsers: false"];
    let docker = without_user_namespaces("unshare", Errno::EPERM);
    check(&docker, &covered, Layer::PidNamespace, &expected);
    let error = LayerError::new(Layer::Proc, "mount proc", Errno::EPERM);
    let podman = Host { pid_namespace: Err(error), ..host() };
    let covered = Evidence { filter: false, filtered: |_| None, ..covered };
    check(&podman, &covered, Layer::PidNamespace, &expected);
}

#[test]
fn root_without_the_right_to_map_is_told_which_capabilities() {
    let root = Host {
        caller: Caller::with(0, [Capability::CAP_SETUID]),
        ..without_user_namespaces("uid_map of root", Errno::EPERM)
    };
    check(&root, &evidence(), Layer::UserNamespace, &["SETUID, SETGID and SETFCAP…--cap-add"]);
}

#[test]
fn each_namespace_has_a_limit_of_its_own() {
    let error = LayerError::new(Layer::Network, "unshare", Errno::ENOSPC);
    let host = Host { network: Err(error), ..host() };
    let none = with_sysctl("user.max_net_namespaces", "0");
    check(&host, &none, Layer::Network, &["sysctl -w user.max_net_namespaces=15000 (now 0)"]);
}

#[test]
fn a_filter_is_asked_about_the_namespace_in_question() {
    let host =
        Host { network: Err(LayerError::new(Layer::Network, "unshare", Errno::EPERM)), ..host() };
    let only_users = Evidence {
        filter: true,
        filtered: |call| match call {
            Call::Unshare(flags) if flags.contains(nix::sched::CloneFlags::CLONE_NEWUSER) => {
                Some(Errno::EPERM)
            }
            _ => None,
        },
        ..evidence()
    };
    check(&host, &only_users, Layer::Network, &["?a security module"]);
}

#[test]
fn landlock_is_not_built_or_not_enabled_or_filtered() {
    let without = |errno| Host {
        landlock: Err(LayerError::new(Layer::Landlock, "landlock_create_ruleset", errno)),
        ..host()
    };
    let check = |errno, evidence: &Evidence, expected: &[&str]| {
        check(&without(errno), evidence, Layer::Landlock, expected);
    };
    let listed = Evidence { security_modules: Some("yama,apparmor".to_owned()), ..evidence() };
    let remedy = "lsm=landlock,yama,apparmor (now yama,apparmor)";
    check(Errno::EOPNOTSUPP, &listed, &[remedy]);
    check(Errno::EOPNOTSUPP, &evidence(), &["lsm=, in front of…/sys/kernel/security/lsm"]);
    let old = Evidence { kernel: "5.10.262-amd64".to_owned(), ..filtered() };
    check(Errno::ENOSYS, &old, &["this is 5.10.262-amd64: Linux 5.13 or later"]);
    check(Errno::ENOSYS, &evidence(), &["was built without…CONFIG_SECURITY_LANDLOCK=y"]);
    let either = ["?was built without…CONFIG_SECURITY", "?filter…does not know…engine of 2023"];
    check(Errno::ENOSYS, &filtered(), &either);
    check(Errno::EPERM, &filtered(), &["filter…refuses Landlock's calls"]);
    check(Errno::E2BIG, &evidence(), &["nested around dsh-run…outside some of the sandboxes"]);
}
