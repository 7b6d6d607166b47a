//! Compiles the refused system calls to a filter.
//!
//! seccompiler compiles the rules; it knows one verdict per filter, kills foreign architectures and
//! does not see x32 (0.5.0). So each verdict is compiled for itself, with a placeholder where no
//! rule matched, and the pieces are put behind each other: the placeholder becomes a jump to the
//! next piece. A prelude of ours answers other architectures, x32 and numbers that are newer than
//! the table. With an observer what would be refused is handed to it as well as what it traps,
//! because an errno outranks a notification and would hide the call; only ENOSYS stays what it is,
//! since a program that meets it takes another way. The kernel runs a filter once per system call number when it loads it, to learn which
//! are always allowed, so what counts is how many instructions an allowed call walks: the pieces
//! are cut into ranges of numbers, and a range that cannot match is skipped in two instructions.

use std::collections::BTreeMap;

use dsh_kernel::seccomp::Instruction;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use crate::seccomp_rules::{Alternative, Comparison, Condition, Refusal, Selected};
use crate::syscalls::{AUDIT_ARCHITECTURE, NEWEST};
use crate::traps::Trapped;

const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const NUMBER: u32 = 0; // offset of nr in seccomp_data
const ARCHITECTURE: u32 = 4; // offset of arch in seccomp_data
/// seccompiler's own check of the architecture, which the prelude replaces.
const ARCHITECTURE_CHECK: usize = 3;
/// A verdict that no rule uses: what a piece returns when none of its rules matched.
const NO_MATCH: SeccompAction = SeccompAction::Trace(0x0d54);
/// What a piece returns in place of handing the call to the observer, which seccompiler cannot say.
const PLACEHOLDER: SeccompAction = SeccompAction::Trace(0x0d55);
/// Calls per range: few enough to walk, enough that the ranges are few.
const RANGE: usize = 8;

/// When a call gets one verdict.
#[derive(Clone)]
enum Chain {
    /// Whatever its arguments are.
    Always,
    /// When one of these matches.
    When(Vec<SeccompRule>),
}

impl Chain {
    /// As seccompiler has it: a call without rules always matches.
    fn rules(&self) -> Vec<SeccompRule> {
        match self {
            Self::Always => Vec::new(),
            Self::When(rules) => rules.clone(),
        }
    }
}

/// What is done with a call, the stronger one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// It fails.
    Refuse(Refusal),
    /// The observer decides.
    Notify,
}

/// Verdicts by number: a call can have several, for different arguments.
type Calls = BTreeMap<u32, BTreeMap<Verdict, Chain>>;

/// Compiles the refused calls, and those that an observer traps if there is one, to one program.
pub(crate) fn compile<'a>(
    refused: impl Iterator<Item = Selected<'a>>,
    trapped: Option<impl Iterator<Item = Trapped<'a>>>,
) -> Result<Vec<Instruction>, BackendError> {
    let mut by_number = Calls::new();
    for call in refused {
        let verdict = match (call.rule.errno, &trapped) {
            (refusal @ Refusal::Enosys, _) | (refusal, None) => Verdict::Refuse(refusal),
            (_, Some(_)) => Verdict::Notify,
        };
        add(&mut by_number, call.number, verdict, &call.rule.when)?;
    }
    for call in trapped.into_iter().flatten() {
        add(&mut by_number, call.number, Verdict::Notify, call.when)?;
    }
    let mut program = prelude();
    let calls: Vec<_> = by_number.into_iter().collect();
    for range in calls.chunks(RANGE) {
        let body = range_body(range)?;
        let highest = range.last().map_or(0, |call| call.0);
        // The number is in the accumulator: every way to here is a skipped range, or the prelude.
        // Numbers above this range skip it; those below it were taken by an earlier one or walk it
        // in vain, which only the few between two ranges do.
        program.push(Instruction { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: highest });
        program.push(instruction(JUMP, length(&body)));
        program.extend(body);
        program.push(allow());
    }
    program.push(allow());
    Ok(program)
}

/// Adds one verdict for a call under these conditions.
fn add(
    calls: &mut Calls,
    number: u32,
    verdict: Verdict,
    when: &[Alternative],
) -> Result<(), BackendError> {
    let verdicts = calls.entry(number).or_default();
    let chain = verdicts.entry(verdict).or_insert_with(|| Chain::When(Vec::new()));
    if when.is_empty() {
        *chain = Chain::Always;
    }
    let Chain::When(rules) = chain else { return Ok(()) };
    for alternative in when {
        let conditions =
            alternative.0.iter().map(condition).collect::<Result<Vec<_>, BackendError>>()?;
        rules.push(SeccompRule::new(conditions)?);
    }
    Ok(())
}

/// All verdicts of one range of numbers, each piece falling through to the next.
fn range_body(range: &[(u32, BTreeMap<Verdict, Chain>)]) -> Result<Vec<Instruction>, BackendError> {
    let mut by_verdict: BTreeMap<Verdict, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
    for (number, verdicts) in range {
        for (verdict, chain) in verdicts {
            by_verdict.entry(*verdict).or_default().insert(i64::from(*number), chain.rules());
        }
    }
    let mut body = Vec::new();
    for (verdict, rules) in by_verdict {
        let action = match verdict {
            Verdict::Refuse(refusal) => SeccompAction::Errno(refusal.errno()),
            Verdict::Notify => PLACEHOLDER,
        };
        let filter = SeccompFilter::new(rules, NO_MATCH, action, target())?;
        let piece: BpfProgram = filter.try_into()?;
        body.extend(fall_through(&piece[ARCHITECTURE_CHECK..]));
    }
    Ok(body)
}

/// Turns every "no rule matched" of a piece into a jump past its end, and the placeholder into what
/// it stands for.
fn fall_through(piece: &[seccompiler::sock_filter]) -> impl Iterator<Item = Instruction> {
    let (no_match, placeholder) = (u32::from(NO_MATCH), u32::from(PLACEHOLDER));
    let end = piece.len();
    piece.iter().enumerate().map(move |(index, from)| {
        if from.code == RETURN && from.k == no_match {
            instruction(JUMP, u32::try_from(end - index - 1).unwrap_or(u32::MAX))
        } else if from.code == RETURN && from.k == placeholder {
            instruction(RETURN, libc::SECCOMP_RET_USER_NOTIF)
        } else {
            Instruction { code: from.code, jt: from.jt, jf: from.jf, k: from.k }
        }
    })
}

/// ENOSYS for other architectures, for x32 (whose numbers have bit 30 set) and for numbers newer
/// than the table.
fn prelude() -> Vec<Instruction> {
    let enosys = instruction(RETURN, u32::from(SeccompAction::Errno(Refusal::Enosys.errno())));
    vec![
        instruction(LOAD_WORD, ARCHITECTURE),
        Instruction { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: AUDIT_ARCHITECTURE },
        enosys,
        instruction(LOAD_WORD, NUMBER),
        Instruction { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: NEWEST },
        enosys,
    ]
}

fn condition(from: &Condition) -> Result<SeccompCondition, BackendError> {
    let (operator, value) = match from.comparison {
        Comparison::Is { value, mask: None } => (SeccompCmpOp::Eq, value),
        Comparison::Is { value, mask: Some(mask) } => (SeccompCmpOp::MaskedEq(mask), value),
        Comparison::Not(value) => (SeccompCmpOp::Ne, value),
    };
    let width = if from.wide { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
    SeccompCondition::new(from.arg, width, operator, value)
}

fn target() -> TargetArch {
    #[cfg(target_arch = "x86_64")]
    return TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    return TargetArch::aarch64;
}

fn instruction(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

fn allow() -> Instruction {
    instruction(RETURN, u32::from(SeccompAction::Allow))
}

fn length(body: &[Instruction]) -> u32 {
    // One more for the ALLOW behind the body.
    u32::try_from(body.len() + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
