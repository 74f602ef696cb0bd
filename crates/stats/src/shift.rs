//! How far one sample lies above another: the median of all pairwise differences, with a distribution-free interval.

use crate::error::StatsError;
use crate::interval::Interval;
use crate::sample::{check_probability, check_values, real, sorted, whole};
use crate::special::normal_quantile;

/// The shift of the second sample against the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Median of the differences, second less first (Hodges-Lehmann).
    pub estimate: f64,
    /// Limits; infinite where the samples are too small for the level.
    pub limits: Interval,
    /// Whether the limits come from the exact distribution of the rank sum rather than its normal limit.
    pub exact: bool,
}

/// Samples up to this size use the exact distribution, as R's `wilcox.test` does.
const MOST_EXACT: usize = 50;

/// Gives the Hodges-Lehmann shift and the interval that inverts the rank-sum test.
///
/// Source: M. Hollander, D. A. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 2014, sections 4.2 and 4.3.
///
/// # Errors
///
/// If a sample is empty or has a value that is not finite, or the level lies outside (0, 1).
pub fn shift_interval(first: &[f64], second: &[f64], level: f64) -> Result<Shift, StatsError> {
    check_values(first, 1)?;
    check_values(second, 1)?;
    check_probability("level", level)?;
    let differences = Differences { low: sorted(first), high: sorted(second) };
    let total = first.len() * second.len();
    let estimate = f64::midpoint(differences.ranked(total.div_ceil(2)), differences.ranked(total / 2 + 1));
    let tail = (1.0 - level) / 2.0;
    let exact = first.len().max(second.len()) <= MOST_EXACT;
    let rank = if exact {
        exact_rank(first.len(), second.len(), tail)
    } else {
        normal_rank(real(first.len()), real(second.len()), tail)
    };
    let limits = if rank == 0 {
        (f64::NEG_INFINITY, f64::INFINITY)
    } else {
        (differences.ranked(rank), differences.ranked(total + 1 - rank))
    };
    Ok(Shift { estimate, limits, exact })
}

/// All differences of two ascending samples, never written down.
struct Differences {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Differences {
    /// Number of differences at or below a bound.
    fn at_most(&self, bound: f64) -> usize {
        let mut skipped = 0;
        self.high
            .iter()
            .map(|high| {
                while skipped < self.low.len() && high - self.low[skipped] > bound {
                    skipped += 1;
                }
                self.low.len() - skipped
            })
            .sum()
    }

    /// The difference of a rank from 1, by bisection over the numbers themselves: at most 64 passes.
    fn ranked(&self, rank: usize) -> f64 {
        let ends =
            (self.high[0] - self.low[self.low.len() - 1], self.high[self.high.len() - 1] - self.low[0]);
        let (mut below, mut at) = (key(ends.0).saturating_sub(1), key(ends.1));
        while at - below > 1 {
            let middle = below + (at - below) / 2;
            if self.at_most(number(middle)) >= rank {
                at = middle;
            } else {
                below = middle;
            }
        }
        number(at) + 0.0
    }
}

const SIGN: u64 = 1 << 63;

/// Whole numbers in the order of the finite numbers they stand for.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn number(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

/// The largest rank C with P(U <= C - 1) at most the tail; U counts the pairs in which the second value is smaller.
fn exact_rank(first: usize, second: usize, tail: f64) -> usize {
    let ways = rank_sum_ways(first, second);
    let all: f64 = ways.iter().sum();
    let mut below = 0.0;
    ways.iter()
        .take_while(|&&count| {
            below += count;
            below / all <= tail
        })
        .count()
}

/// In how many ways U takes each of its values: sums of `second` distinct numbers below `first + second`.
fn rank_sum_ways(first: usize, second: usize) -> Vec<f64> {
    let width = first * second + 1;
    // ways[j][u]: subsets of j numbers seen so far whose sum exceeds the least possible by u.
    let mut ways = vec![vec![0.0; width]; second + 1];
    ways[0][0] = 1.0;
    for number in 0..first + second {
        for size in (1..=second.min(number + 1)).rev() {
            // As the largest of `size` numbers it exceeds its least possible value, size - 1, by this.
            let excess = number + 1 - size;
            let (smaller, larger) = ways.split_at_mut(size);
            for (sum, slot) in larger[0].iter_mut().enumerate().skip(excess) {
                *slot += smaller[size - 1][sum - excess];
            }
        }
    }
    ways.swap_remove(second)
}

fn normal_rank(first: f64, second: f64, tail: f64) -> usize {
    let spread = (first * second * (first + second + 1.0) / 12.0).sqrt();
    whole((first * second / 2.0 + normal_quantile(tail) * spread).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::{exact_rank, key, normal_rank, number, rank_sum_ways, shift_interval};
    use proptest::prelude::*;

    /// R: `pwilcox(0:4, 2, 2) * choose(4, 2)` rises by 1, 1, 2, 1, 1; `qwilcox(.025, 10, 10)` is 24.
    #[test]
    fn the_distribution_of_the_rank_sum_is_that_of_counting() {
        assert_eq!(rank_sum_ways(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        let ways = rank_sum_ways(50, 50);
        let all: f64 = ways.iter().sum();
        // choose(100, 50)
        assert!((all / 1.008_913_445_455_641_9e29 - 1.0).abs() < 1e-12);
        assert_eq!(exact_rank(10, 10, 0.025), 24);
        assert_eq!(exact_rank(3, 3, 0.025), 0);
    }

    #[test]
    fn the_normal_limit_joins_the_exact_distribution() {
        let (exact, limit) = (exact_rank(50, 50, 0.025), normal_rank(50.0, 50.0, 0.025));
        assert!(exact.abs_diff(limit) <= 1, "{exact} {limit}");
    }

    #[test]
    fn samples_too_small_have_no_limits() {
        let found = shift_interval(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0], 0.95).unwrap();
        assert!((found.estimate - 10.0).abs() < 1e-12);
        assert!(found.limits.0.is_infinite() && found.limits.1.is_infinite());
    }

    proptest! {
        #[test]
        fn limits_are_ranked_differences(
            first in prop::collection::vec(-50.0..50.0_f64, 4..30), second in prop::collection::vec(-5_i8..5, 4..80),
        ) {
            let second: Vec<f64> = second.into_iter().map(f64::from).collect();
            let mut all: Vec<f64> =
                second.iter().flat_map(|y| first.iter().map(move |x| y - x)).collect();
            all.sort_by(f64::total_cmp);
            let found = shift_interval(&first, &second, 0.95).unwrap();
            let size = all.len();
            let middle = f64::midpoint(all[size.div_ceil(2) - 1], all[size / 2]);
            prop_assert!((found.estimate - middle).abs() <= 1e-12 * (1.0 + middle.abs()));
            prop_assert_eq!(found.exact, second.len() <= 50);
            let rank = if found.exact {
                exact_rank(first.len(), second.len(), 0.025)
            } else {
                normal_rank(f64::from(u32::try_from(first.len()).unwrap()), f64::from(u32::try_from(second.len()).unwrap()), 0.025)
            };
            if rank > 0 {
                prop_assert!((all[rank - 1] - found.limits.0).abs() < 1e-12);
                prop_assert!((all[size - rank] - found.limits.1).abs() < 1e-12);
            } else {
                prop_assert!(found.limits.0.is_infinite());
            }
            prop_assert_eq!(number(key(first[0])).to_bits(), first[0].to_bits());
        }
    }
}
