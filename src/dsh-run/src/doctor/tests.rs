use dsh_facts::{ModeReport, SandboxMode, VERSION};

use super::*;

fn host(levels: [ModeLevel; 2]) -> HostReport {
    let modes = SandboxMode::ALL.into_iter().zip(levels.into_iter().chain([ModeLevel::Unconfined]));
    HostReport {
        version: VERSION,
        kernel: "6.12.0".to_owned(),
        uid: 1000,
        container: None,
        steps: Vec::new(),
        modes: modes
            .map(|(mode, level)| ModeReport {
                mode,
                level,
                network: None,
                effects: Vec::new(),
                gaps: Vec::new(),
                error: None,
            })
            .collect(),
    }
}

#[test]
fn the_status_counts_the_confined_modes_that_do_not_run() {
    assert_eq!(status(&host([ModeLevel::Full, ModeLevel::Partial])), 0);
    assert_eq!(status(&host([ModeLevel::Full, ModeLevel::Refused])), 1);
    assert_eq!(status(&host([ModeLevel::Refused, ModeLevel::Refused])), 2);
}
