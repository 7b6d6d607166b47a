use std::collections::BTreeMap;

use super::*;

fn complete() -> Coverage {
    Coverage {
        mode: SandboxMode::WorkspaceWrite,
        own_mounts: true,
        others_read_only: true,
        pid_namespace: true,
        ipc_namespace: true,
        private_network: true,
        lock_by_sysctl: true,
        landlock: 9,
        observer: true,
        wanted_network: Network::Loopback,
        process_limit: Ok(Some(Layer::Limits)),
        kernel: "7.1.0".to_owned(),
        remedies: BTreeMap::new(),
    }
}

fn landlock_alone() -> Coverage {
    let remedy = |step| (step, format!("allow {step}"));
    let refused = [Layer::Mount, Layer::PidNamespace, Layer::IpcNamespace, Layer::Network];
    Coverage {
        own_mounts: false,
        others_read_only: false,
        pid_namespace: false,
        ipc_namespace: false,
        private_network: false,
        lock_by_sysctl: false,
        landlock: 7,
        observer: false,
        remedies: refused.map(remedy).into(),
        ..complete()
    }
}

fn names(coverage: &Coverage) -> Vec<String> {
    gaps(&list(coverage)).into_iter().map(|gap| gap.effect).collect()
}

#[test]
fn nothing_is_missing_where_everything_is_governed() {
    assert!(names(&complete()).is_empty());
}

#[test]
fn unix_sockets_are_governed_by_the_best_there_is() {
    let governed = |landlock, observer| {
        let coverage = Coverage { landlock, observer, ..complete() };
        let effects = list(&coverage);
        effects.into_iter().find(|effect| effect.name == "unix_sockets").map(|e| e.governed_by)
    };
    assert_eq!(governed(9, true), Some(vec!["landlock"]));
    assert_eq!(governed(7, true), Some(vec!["observer"]));
    assert_eq!(governed(7, false), Some(vec!["seccomp"]));
}

#[test]
fn landlock_alone_leaves_its_list() {
    let alone = landlock_alone();
    assert_eq!(
        names(&alone),
        ["metadata", "devices", "processes", "leftovers", "scratch", "ipc", "network"]
    );
    let read_only = Coverage { mode: SandboxMode::ReadOnly, ..alone.clone() };
    assert!(!names(&read_only).contains(&"metadata".to_owned()), "refused by the filter there");
    let observed = Coverage { observer: true, ..alone.clone() };
    assert!(!names(&observed).contains(&"metadata".to_owned()), "changed by the observer there");
    assert!(names(&Coverage { landlock: 2, ..alone }).contains(&"truncate".to_owned()));
}

#[test]
fn an_effect_is_a_gap_exactly_where_nothing_governs_it() {
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        for network in Network::ALL {
            for base in [complete(), landlock_alone()] {
                for landlock in [1, 3, 5, 6, 9] {
                    let coverage =
                        Coverage { mode, wanted_network: network, landlock, ..base.clone() };
                    for effect in list(&coverage) {
                        assert_eq!(
                            effect.governed_by.is_empty(),
                            effect.gap.is_some(),
                            "{effect:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_gap_names_what_brings_its_step_back() {
    for gap in gaps(&list(&landlock_alone())) {
        assert!(!gap.remedy.is_empty(), "{gap:?}");
    }
    let metadata = &gaps(&list(&landlock_alone()))[0];
    assert_eq!(metadata.remedy, "allow mount");
}

#[test]
fn what_the_host_does_by_itself_is_no_gap() {
    let nested = Coverage { others_read_only: true, ..landlock_alone() };
    let metadata = list(&nested).into_iter().find(|effect| effect.name == "metadata");
    assert_eq!(metadata.expect("promised").governed_by, ["host"]);
}
