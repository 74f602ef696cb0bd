//! Intervals from bootstrap replicates.

use crate::sample::{real, whole};
use crate::special::{normal_cdf, normal_quantile};

/// Lower and upper limit.
pub type Interval = (f64, f64);

/// The usual bootstrap intervals of one statistic; limits that do not exist are not numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// The statistic of the sample itself.
    pub estimate: f64,
    /// Quantiles of the replicates.
    pub percentile: Interval,
    /// The percentile interval mirrored at the estimate.
    pub basic: Interval,
    /// Bias-corrected and accelerated.
    pub bca: Interval,
    /// Bootstrap-t.
    pub studentised: Interval,
}

impl Intervals {
    /// All limits on the estimate: a sample without spread.
    pub(crate) fn point(estimate: f64) -> Self {
        let both = (estimate, estimate);
        Self { estimate, percentile: both, basic: both, bca: both, studentised: both }
    }
}

/// Quantile of replicates as R's `boot.ci` takes it: rank (R + 1) p, between two ranks interpolated on the normal scale.
///
/// Source: A. C. Davison, D. V. Hinkley, "Bootstrap Methods and their Application", 1997, eq. 5.8.
/// Reorders the slice.
pub(crate) fn normal_interpolated(replicates: &mut [f64], p: f64) -> f64 {
    let count = replicates.len();
    if count == 0 {
        return f64::NAN;
    }
    let rank = (real(count) + 1.0) * p;
    let lower = whole(rank);
    if lower == 0 {
        return select(replicates, 0);
    }
    if lower >= count {
        return select(replicates, count - 1);
    }
    let at = select(replicates, lower - 1);
    // After selection everything above the rank lies behind it.
    let next = replicates[lower..].iter().copied().fold(f64::INFINITY, f64::min);
    let below = normal_quantile(real(lower) / (real(count) + 1.0));
    let above = normal_quantile(real(lower + 1) / (real(count) + 1.0));
    let share = (normal_quantile(p) - below) / (above - below);
    if share <= 0.0 || next.to_bits() == at.to_bits() { at } else { at + share * (next - at) }
}

fn select(values: &mut [f64], index: usize) -> f64 {
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

pub(crate) fn percentile(replicates: &mut [f64], tails: (f64, f64)) -> Interval {
    (normal_interpolated(replicates, tails.0), normal_interpolated(replicates, tails.1))
}

pub(crate) fn mirrored(estimate: f64, percentile: Interval) -> Interval {
    (2.0 * estimate - percentile.1, 2.0 * estimate - percentile.0)
}

/// `BCa` limits. Replicates equal to the estimate count one half in the bias correction (deviation from
/// Efron 1987, which counts them as above; matters for discrete statistics only).
pub(crate) fn bca(replicates: &mut [f64], estimate: f64, acceleration: f64, tails: (f64, f64)) -> Interval {
    let mut below = 0_usize;
    let mut equal = 0_usize;
    // Resamples that are permutations of the sample differ from the estimate by rounding only.
    let rounding = 1e-12 * (1.0 + estimate.abs());
    for &value in replicates.iter() {
        let distance = value - estimate;
        below += usize::from(distance < -rounding);
        equal += usize::from(distance.abs() <= rounding);
    }
    let share = (real(below) + 0.5 * real(equal)) / real(replicates.len());
    let bias = normal_quantile(share);
    if !bias.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    let mut limit = |tail: f64| {
        let shifted = bias + normal_quantile(tail);
        normal_interpolated(replicates, normal_cdf(bias + shifted / (1.0 - acceleration * shifted)))
    };
    (limit(tails.0), limit(tails.1))
}

/// Acceleration from leave-one-out values (Efron 1987, eq. 6.6).
pub(crate) fn acceleration(leave_one_out: &[f64]) -> f64 {
    let centre = crate::sum::mean(leave_one_out);
    let squares = crate::sum::exact_sum(leave_one_out.iter().map(|value| (centre - value).powi(2)));
    let cubes = crate::sum::exact_sum(leave_one_out.iter().map(|value| (centre - value).powi(3)));
    if squares > 0.0 { cubes / (6.0 * squares * squares.sqrt()) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{bca, normal_interpolated, percentile};

    /// R 4.2: `boot:::norm.inter(1:9, c(.1, .25, .5, .93))` gives 1, 2.4767, 5, 9 (rank 9.3 is capped).
    #[test]
    fn replicate_quantiles_follow_norm_inter() {
        let mut values: Vec<f64> = (1..10).rev().map(f64::from).collect();
        assert!((normal_interpolated(&mut values, 0.1) - 1.0).abs() < 1e-12);
        assert!((normal_interpolated(&mut values, 0.5) - 5.0).abs() < 1e-12);
        assert!((normal_interpolated(&mut values, 0.93) - 9.0).abs() < 1e-12);
        let quarter = normal_interpolated(&mut values, 0.25);
        // (qnorm(.25) - qnorm(.2)) / (qnorm(.3) - qnorm(.2)) = 0.52706...
        let share = (-0.674_489_750_196 + 0.841_621_233_573) / (-0.524_400_512_708 + 0.841_621_233_573);
        assert!((quarter - (2.0 + share)).abs() < 1e-9, "{quarter}");
    }

    #[test]
    fn without_bias_and_acceleration_bca_is_percentile() {
        let mut values: Vec<f64> = (0..1001).map(f64::from).collect();
        let plain = percentile(&mut values, (0.025, 0.975));
        let corrected = bca(&mut values, 500.0, 0.0, (0.025, 0.975));
        assert!((plain.0 - corrected.0).abs() < 1e-6 && (plain.1 - corrected.1).abs() < 1e-6);
    }
}
