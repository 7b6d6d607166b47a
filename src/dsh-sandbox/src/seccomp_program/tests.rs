//! The program against the table, by running it: a small interpreter of classic BPF.

use dsh_facts::{Observe, SandboxMode};

use super::*;
use crate::rung::Rung;
use crate::seccomp_rules::{Rules, Situation};
use crate::traps::Traps;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const ALL: [Situation; 9] = [
    Situation::RootCaller,
    Situation::OwnInit,
    Situation::HostPids,
    Situation::NamespacesLockedByFilter,
    Situation::NetworkOffByFilter,
    Situation::MetadataRefused,
    Situation::MetadataPerformed,
    Situation::MetadataGoverned,
    Situation::UnixSocketsRefused,
];

/// What the kernel would return for one call.
fn run(program: &[Instruction], architecture: u32, number: u32, args: [u64; 6]) -> u32 {
    let word = |offset: u32| match offset {
        0 => number,
        4 => architecture,
        16.. => {
            let arg = args[usize::try_from((offset - 16) / 8).expect("an argument")];
            let half = if (offset - 16).is_multiple_of(8) { arg } else { arg >> 32 };
            u32::try_from(half & 0xffff_ffff).expect("masked")
        }
        other => panic!("load of offset {other}"),
    };
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let skip = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            LOAD_WORD => accumulator = word(k),
            0x54 => accumulator &= k,
            JUMP => at += usize::try_from(k).expect("a jump"),
            JUMP_IF_EQUAL => at += skip(accumulator == k),
            JUMP_IF_GREATER => at += skip(accumulator > k),
            0x35 => at += skip(accumulator >= k),
            RETURN => return k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

/// What the tables say about one call, read without the compiler.
struct Expected<'a> {
    refused: Vec<Selected<'a>>,
    /// None without an observer.
    trapped: Option<Vec<Trapped<'a>>>,
}

impl Expected<'_> {
    fn verdicts(&self, args: [u64; 6]) -> Vec<u32> {
        let holds = |when: &[Alternative]| {
            when.is_empty()
                || when.iter().any(|conditions| {
                    conditions.0.iter().all(|c| {
                        let arg = args[usize::from(c.arg)];
                        let arg = if c.wide { arg } else { arg & 0xffff_ffff };
                        match c.comparison {
                            Comparison::Is { value, mask } => {
                                arg & mask.unwrap_or(u64::MAX) == value
                            }
                            Comparison::Not(value) => arg != value,
                        }
                    })
                })
        };
        let refused = self.refused.iter().filter(|call| holds(&call.rule.when));
        let verdicts: Vec<u32> =
            refused.map(|call| 0x0005_0000 | call.rule.errno.errno()).collect();
        let enosys = 0x0005_0000 | Refusal::Enosys.errno();
        match &self.trapped {
            Some(_) if verdicts.contains(&enosys) => vec![enosys],
            Some(trapped)
                if !verdicts.is_empty() || trapped.iter().any(|call| holds(call.when)) =>
            {
                vec![NOTIFY]
            }
            _ => verdicts,
        }
    }
}

fn table() -> Rules {
    Rung::of(SandboxMode::ReadOnly)
        .and_then(|profile| profile.rules())
        .expect("the embedded table parses")
        .expect("a confined rung has one")
}

#[test]
fn every_call_gets_the_verdict_of_the_table() {
    let rules = table();
    // Values that matter to some rule, and some that do not.
    let values = [
        0,
        1,
        2,
        3,
        5,
        6,
        8,
        9,
        10,
        16,
        17,
        38,
        40,
        0o100,
        0o4755,
        0o2755,
        0o755,
        0o20200000,
        0x5412,
        0x541c,
        0x1_0000_5412,
        0x4008_6602,
        0x1000_0000,
        0x0002_0000,
        0x7e02_0000,
        0x1_0000_0001,
        0xffff_ffff_ffff_ffff,
    ];
    let table = Traps::table().expect("the embedded table parses");
    let combinations = [
        (None, &ALL[..]),
        (None, &[]),
        (None, &ALL[..1]),
        (None, &ALL[1..3]),
        (None, &ALL[3..]),
        (Some(Observe::Sockets), &ALL[..]),
        (Some(Observe::Paths), &[]),
        (Some(Observe::All), &ALL[..2]),
    ];
    for (level, situations) in combinations {
        let select = || level.map(|level| table.select(level, situations));
        let program = compile(rules.select(situations), select()).expect("it compiles");
        for number in 0..=NEWEST {
            let expected = Expected {
                refused: rules.select(situations).filter(|call| call.number == number).collect(),
                trapped: select().map(|calls| calls.filter(|c| c.number == number).collect()),
            };
            for first in values {
                for second in values {
                    for rest in [0, 0o4755] {
                        let args = [first, second, rest, rest, 0, 0];
                        let verdict = run(&program, AUDIT_ARCHITECTURE, number, args);
                        let expected = expected.verdicts(args);
                        if expected.is_empty() {
                            assert_eq!(verdict, ALLOW, "call {number} {args:x?}");
                        } else {
                            assert!(expected.contains(&verdict), "call {number} {args:x?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn other_architectures_x32_and_newer_numbers_are_enosys() {
    let none: Option<std::iter::Empty<Trapped<'_>>> = None;
    let program = compile(table().select(&[]), none).expect("it compiles");
    let enosys = 0x0005_0000 | Refusal::Enosys.errno();
    for (architecture, number) in [
        (0x4000_0003, 1),                       // i386
        (AUDIT_ARCHITECTURE, 0x4000_0000),      // x32 read
        (AUDIT_ARCHITECTURE, 0x4000_0000 + 39), // x32 getpid
        (AUDIT_ARCHITECTURE, NEWEST + 1),
        (AUDIT_ARCHITECTURE, u32::MAX),
    ] {
        assert_eq!(run(&program, architecture, number, [0; 6]), enosys, "{number:#x}");
    }
    assert_eq!(run(&program, AUDIT_ARCHITECTURE, 39, [0; 6]), ALLOW);
}
