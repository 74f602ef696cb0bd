//! Sums that are rounded once: the order of the terms cannot change a bit.

use crate::sample::real;

/// Gives the sum, correctly rounded, of finite values whose sum is finite.
///
/// Source: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997, figures 6 and 8 (growing an expansion).
#[must_use]
pub fn exact_sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::with_capacity(8);
    for value in values {
        let mut carry = value;
        let mut kept = 0;
        for index in 0..partials.len() {
            let (high, low) = two_sum(carry, partials[index]);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            carry = high;
        }
        partials.truncate(kept);
        partials.push(carry);
    }
    round(&partials)
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let (large, small) = if a.abs() < b.abs() { (b, a) } else { (a, b) };
    let high = large + small;
    (high, small - (high - large))
}

/// Adds non-overlapping partials of growing size, with ties broken by what lies below them.
fn round(partials: &[f64]) -> f64 {
    let Some((&last, rest)) = partials.split_last() else {
        return 0.0;
    };
    let mut high = last;
    let mut low = 0.0;
    let mut left = rest.len();
    while left > 0 {
        left -= 1;
        let before = high;
        high = before + rest[left];
        low = rest[left] - (high - before);
        if low != 0.0 {
            break;
        }
    }
    // Half-way case: the sign of the next partial decides.
    if left > 0 && (low < 0.0) == (rest[left - 1] < 0.0) && low != 0.0 && rest[left - 1] != 0.0 {
        let double = low * 2.0;
        let moved = high + double;
        if (moved - high).to_bits() == double.to_bits() {
            high = moved;
        }
    }
    high
}

/// Gives the mean by an exact sum; not a number for an empty sample.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    exact_sum(values.iter().copied()) / real(values.len())
}

/// Gives the standard deviation (divisor n - 1) by exact sums around the mean.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares = exact_sum(values.iter().map(|value| (value - centre) * (value - centre)));
    (squares / (real(values.len()) - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{exact_sum, mean, standard_deviation};
    use proptest::prelude::*;

    #[test]
    fn cancellation_leaves_the_small_term() {
        assert_eq!(exact_sum([1e100, 1.0, -1e100]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exact_sum([0.1; 10]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exact_sum([]).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn half_way_cases_round_by_the_rest() {
        // 2^53 + 1 is half way between two doubles; the tiny last term decides.
        let base = 9_007_199_254_740_992.0;
        assert_eq!(exact_sum([base, 1.0, 1e-30]).to_bits(), (base + 2.0).to_bits());
        assert_eq!(exact_sum([base, 1.0, -1e-30]).to_bits(), base.to_bits());
    }

    /// `NIST` `StRD` univariate summary statistics, data set `NumAcc4`: certified mean 10000000.2, sd 0.1.
    #[test]
    fn certified_mean_and_deviation_of_nist_numacc4() {
        let mut values = vec![10_000_000.2];
        for _ in 0..500 {
            values.extend([10_000_000.1, 10_000_000.3]);
        }
        assert!((mean(&values) - 10_000_000.2).abs() < 2e-9);
        assert!((standard_deviation(&values) - 0.1).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn order_does_not_change_a_bit(mut values in prop::collection::vec(-1e12..1e12_f64, 1..60), seed in 0_usize..50) {
            let before = exact_sum(values.iter().copied());
            let length = values.len();
            values.rotate_left(seed % length);
            values.reverse();
            prop_assert_eq!(before.to_bits(), exact_sum(values).to_bits());
        }
    }
}
