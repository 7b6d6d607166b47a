//! Numbers that look random and are the same for the same seed: splitmix64.

/// A source of numbers.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The source of one case of a run.
    pub(crate) fn of_case(seed: u64, case: u64) -> Self {
        let mut random = Self { state: seed };
        random.state ^= random.next().wrapping_mul(case.wrapping_add(1));
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from(self.next() % limit).unwrap_or_default()
    }

    /// Whether something of this many percent comes about.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several, none of which is none.
    pub(crate) fn one_of<'a, T>(&mut self, several: &'a [T]) -> Option<&'a T> {
        if several.is_empty() { None } else { several.get(self.below(several.len())) }
    }
}
