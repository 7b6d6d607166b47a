//! How often a race is run.

/// `DSH_RACE_ROUNDS`, or enough to see most races and to be quick.
pub(crate) fn rounds() -> u64 {
    std::env::var("DSH_RACE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5000)
}
