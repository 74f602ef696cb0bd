//! Exact intervals from order statistics: no resampling, no assumption but independence.

use crate::beta::binomial_upper;
use crate::error::StatsError;
use crate::interval::Interval;
use crate::sample::{check_probability, check_values, real, sorted};

/// An interval for a quantile of the population with the coverage it really has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderInterval {
    /// Limits; infinite where the sample is too small for one on that side.
    pub limits: Interval,
    /// Probability that the limits enclose the quantile, for continuous values; at least the level where both limits are finite.
    pub coverage: f64,
}

/// Gives the interval between two order statistics that encloses the `p`-quantile with at least the given level,
/// at most half of the rest on each side.
///
/// Source: H. A. David, H. N. Nagaraja, "Order Statistics", 2003, section 7.1: the number of values at or below the quantile
/// is binomial.
///
/// # Errors
///
/// If the sample is empty or has a value that is not finite, or `p` or the level lies outside (0, 1).
pub fn order_interval(values: &[f64], p: f64, level: f64) -> Result<OrderInterval, StatsError> {
    check_values(values, 1)?;
    check_probability("probability", p)?;
    check_probability("level", level)?;
    let sample = sorted(values);
    let count = sample.len();
    let tail = (1.0 - level) / 2.0;
    // P(x_(r) > quantile) = P(fewer than r values lie at or below it) = 1 - P(at least r do).
    let lower = last(count + 1, |rank| 1.0 - binomial_upper(rank, count, p) <= tail);
    // P(x_(s) < quantile) is at most P(at least s values lie at or below it).
    let upper = 1 + last(count + 1, |rank| binomial_upper(rank, count, p) > tail);
    let low = if lower == 0 { f64::NEG_INFINITY } else { sample[lower - 1] };
    let high = if upper > count { f64::INFINITY } else { sample[upper - 1] };
    let coverage = binomial_upper(lower, count, p) - binomial_upper(upper, count, p);
    Ok(OrderInterval { limits: (low, high), coverage })
}

/// Gives the percentile limits of the bootstrap of one order statistic, as they are with infinitely many resamples.
///
/// P(k-th smallest value of a resample <= `x_(j)`) = P(Binomial(n, j / n) >= k).
pub(crate) fn exact_percentile(sample: &[f64], rank: usize, tails: (f64, f64)) -> Interval {
    let count = sample.len();
    let limit = |tail: f64| {
        let below = last(count, |place| binomial_upper(rank, count, real(place) / real(count)) < tail);
        sample[below.min(count - 1)]
    };
    (limit(tails.0), limit(tails.1))
}

/// The largest number below `end` for which a condition holds that holds at 0 and, once broken, stays so.
fn last(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::{exact_percentile, order_interval};

    fn ranks(count: u32) -> Vec<f64> {
        (1..=count).map(f64::from).collect()
    }

    /// Table in Conover, "Practical Nonparametric Statistics": n = 15, median, ranks 4 and 12, coverage 0.9648.
    #[test]
    fn ranks_and_coverage_of_the_median_are_those_of_the_tables() {
        let found = order_interval(&ranks(15), 0.5, 0.95).unwrap();
        assert_eq!(found.limits, (4.0, 12.0));
        assert!((found.coverage - 0.964_843_75).abs() < 1e-12, "{}", found.coverage);
    }

    /// 0.99^n falls to 0.025 between n = 367 and n = 368.
    #[test]
    fn a_two_sided_interval_of_p99_exists_from_368_values_on() {
        assert!(order_interval(&ranks(367), 0.99, 0.95).unwrap().limits.1.is_infinite());
        let found = order_interval(&ranks(368), 0.99, 0.95).unwrap();
        assert!((found.limits.1 - 368.0).abs() < 1e-12 && found.coverage >= 0.95);
        let single = order_interval(&[3.0], 0.5, 0.95).unwrap();
        assert!(single.limits.0.is_infinite() && single.limits.1.is_infinite());
    }

    /// P(Bin(15, j/15) >= 8) is 0.0255 at j = 4 and 0.0882 at j = 5.
    #[test]
    fn percentile_limits_are_binomial_tails() {
        assert_eq!(exact_percentile(&ranks(15), 8, (0.05, 0.95)), (5.0, 11.0));
        assert_eq!(exact_percentile(&ranks(15), 8, (0.025, 0.975)), (4.0, 12.0));
        assert_eq!(exact_percentile(&[2.5], 1, (0.025, 0.975)), (2.5, 2.5));
    }
}
