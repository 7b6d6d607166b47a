//! Order statistics: a mean would tell of the machine's interruptions.

use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) p95: f64,
}

impl Summary {
    pub(crate) fn of(samples: &[f64]) -> Self {
        Self { min: quantile(samples, 0.0), median: median(samples), p95: quantile(samples, 0.95) }
    }
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The median over the rounds of one program's time by the other's in the same round, which
/// whatever slowed the whole round leaves alone.
pub(crate) fn paired_ratio(times: &[f64], by: &[f64]) -> f64 {
    let ratios: Vec<_> = times.iter().zip(by).map(|(time, by)| time / by).collect();
    median(&ratios)
}

/// With linear interpolation between the two nearest ranks; NaN of nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank lies between 0 and the number of samples"
)]
fn quantile(samples: &[f64], fraction: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let rank = last as f64 * fraction;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_and_do_not_need_order() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&samples, 0.0), 1.0);
        assert_eq!(median(&samples), 2.5);
        assert_eq!(quantile(&samples, 1.0), 4.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_slow_round_does_not_move_the_paired_ratio() {
        assert_eq!(paired_ratio(&[2.0, 200.0, 2.0], &[1.0, 100.0, 1.0]), 2.0);
    }
}
