//! dsh-run killed at random moments.

use std::fs;
use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::support::stage::Programs;
use crate::victim::{DAEMONS, GRACE, Place, Victim};

/// How many are killed side by side.
const BATCH: u32 = 8;
/// The latest moment.
const LATEST: Duration = Duration::from_millis(50);

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in Place::all() {
        for signal in [Signal::SIGKILL, Signal::SIGTERM] {
            let place = place.clone();
            let name = format!("rounds::{signal}::{}", place.label());
            cases.push(Case::new(name, move |programs| {
                killed_at_any_moment(programs, &place, signal)
            }));
        }
    }
    cases
}

fn killed_at_any_moment(programs: &Programs, place: &Place, signal: Signal) -> Verdict {
    if let Some(reason) = place.obstacle() {
        return skip(reason);
    }
    let rounds = std::env::var("DSH_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut rounds: u32 = rounds.unwrap_or(200);
    if matches!(place, Place::WithoutPidNamespace(_)) {
        rounds = rounds.div_ceil(10);
    }
    let mut moments = Moments::new();
    let mut problems = Problems::default();
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo")?;
    let numbers: Vec<u32> = (0..rounds).collect();
    for batch in numbers.chunks(BATCH as usize) {
        let batch: Vec<(u32, Duration)> =
            batch.iter().map(|number| (*number, moments.next())).collect();
        let victims = std::thread::scope(|scope| {
            let strikes: Vec<_> = batch
                .iter()
                .map(|&(number, moment)| {
                    // Half of them while the sandbox is being made, half once the command runs.
                    scope.spawn(move || strike(programs, place, signal, moment, number % 2 == 1))
                })
                .collect();
            let joined = strikes.into_iter().map(|strike| {
                strike.join().unwrap_or_else(|_| Err(io::Error::other("the round panicked")))
            });
            joined.collect::<io::Result<Vec<_>>>()
        })?;
        let sizes: Vec<u64> = victims.iter().map(|(victim, _)| victim.written()).collect();
        std::thread::sleep(Duration::from_millis(60));
        for ((victim, found), (size, moment)) in victims.iter().zip(sizes.iter().zip(&batch)) {
            let round = format!("round {} after {:?}", moment.0, moment.1);
            problems.check(found.is_empty(), || format!("{round}: {}", found.join("; ")));
            problems.equal(&format!("{round}: growth of the file"), victim.written() - size, 0);
            let files = files(victim)?;
            problems.check(files.is_empty(), || format!("{round}: left {files:?}"));
        }
    }
    let now = fs::read_to_string("/proc/thread-self/mountinfo")?;
    problems.equal("mounts", now, mounts);
    problems.verdict(&moments)
}

/// One round; says what is wrong after it.
fn strike(
    programs: &Programs,
    place: &Place,
    signal: Signal,
    moment: Duration,
    started: bool,
) -> io::Result<(Victim, Vec<String>)> {
    let text = format!("{DAEMONS}\nwhile :; do sleep 60; done");
    let mut victim = Victim::start(programs, place, &[], &text)?;
    let target = victim.pid()?;
    if started {
        victim.wait_started()?;
    }
    std::thread::sleep(moment);
    victim.strike(target, signal)?;
    let status = victim.wait()?;
    let mut found = Vec::new();
    if status != 128 + signal as i32 {
        found.push(format!("status {status}, {:?}", victim.stderr()?));
    }
    // A dsh-run that has said how the command ended has said that nothing is left of it.
    let facts = victim.fixture.facts().exists();
    let left = victim.left_after(if facts { Duration::ZERO } else { GRACE });
    if !left.is_empty() {
        found.push(format!("{left:?}"));
    }
    if facts && !victim.facts()?.exit.is_some_and(|exit| exit.aborted) {
        found.push("the facts do not say that it was aborted".to_owned());
    }
    if facts && signal == Signal::SIGKILL {
        found.push("facts of a run that could not end".to_owned());
    }
    Ok((victim, found))
}

/// Files that nobody meant to be there.
fn files(victim: &Victim) -> io::Result<Vec<String>> {
    let fixture = &victim.fixture;
    let known = ["file", "facts.json", "report", "outside", "stderr", "ticks", "workspace"];
    let mut left = Vec::new();
    for directory in [fixture.top(), &fixture.outside(), &fixture.report(), &fixture.workspace()] {
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !known.contains(&&*name) {
                left.push(name);
            }
        }
    }
    Ok(left)
}

/// Random moments, from a seed that a failure shows.
#[derive(Debug)]
struct Moments {
    _seed: u64,
    state: u64,
}

impl Moments {
    fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let seed = RandomState::new().hash_one(0);
        Self { _seed: seed, state: seed }
    }

    fn next(&mut self) -> Duration {
        // Knuth's MMIX generator; its high bits are the good ones.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        LATEST * u32::from((self.state >> 48) as u16) / 65536
    }
}
