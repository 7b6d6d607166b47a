//! The clock, and the order in which the programs meet it.

use std::time::Instant;

use crate::Result;
use crate::programs::Program;

/// Enough for the page cache and the kernel's slabs to hold what a run needs.
const WARM_UP: u32 = 5;

/// The times of one program, in microseconds; the n-th of each was taken in the n-th round.
pub(crate) struct Samples {
    pub(crate) name: &'static str,
    pub(crate) microseconds: Vec<f64>,
}

/// Runs every program once per round. A run pays for what the one before it left behind (the kernel
/// takes namespaces down in the background), so the order changes with every round.
pub(crate) fn interleaved(programs: &[Program], rounds: u32) -> Result<Vec<Samples>> {
    for program in programs {
        program.check()?;
    }
    let mut samples: Vec<_> = programs
        .iter()
        .map(|program| Samples { name: program.name, microseconds: Vec::new() })
        .collect();
    let mut order: Vec<_> = (0..programs.len()).collect();
    let mut shuffle = Shuffle(0x9E37_79B9);
    for round in 0..WARM_UP + rounds {
        shuffle.apply(&mut order);
        for &at in &order {
            let microseconds = time(&programs[at])?;
            if round >= WARM_UP {
                samples[at].microseconds.push(microseconds);
            }
        }
    }
    Ok(samples)
}

/// One run from spawn to wait, on CLOCK_MONOTONIC, which is what `Instant` reads.
pub(crate) fn time(program: &Program) -> Result<f64> {
    let mut command = program.command();
    let start = Instant::now();
    let status = command.spawn()?.wait()?;
    let elapsed = start.elapsed();
    if !status.success() {
        return Err(format!("{}: {status} in a timed run", program.name).into());
    }
    Ok(elapsed.as_secs_f64() * 1e6)
}

/// Marsaglia's xorshift: the same orders in every run of the benchmark.
struct Shuffle(u32);

impl Shuffle {
    fn apply(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, self.next() % (last + 1));
        }
    }

    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize
    }
}
