//! Two-sample Kolmogorov-Smirnov test.

use std::f64::consts::PI;

use crate::error::StatsError;
use crate::sample::{check_values, real, sorted};

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kolmogorov {
    /// Largest distance between the two distribution functions.
    pub statistic: f64,
    /// Probability of a distance at least as large if both samples come from one distribution.
    pub p_value: f64,
    /// Whether the p-value is exact (ties included) rather than asymptotic.
    pub exact: bool,
}

/// Up to this product of sizes the p-value is exact: the price is one step per pair.
const EXACT_PRODUCT: usize = 4_000_000;

/// Tests whether two samples come from one distribution, two-sided.
///
/// Exact p-values are conditional on the ties of the pooled sample (Schroer and Trenkler 1995, as R's `psmirnov`);
/// without ties they are the usual ones. Large samples use the limiting distribution with Stephens' correction (1970).
///
/// # Errors
///
/// If a sample is empty or has a value that is not finite.
pub fn kolmogorov_smirnov(first: &[f64], second: &[f64]) -> Result<Kolmogorov, StatsError> {
    check_values(first, 1)?;
    check_values(second, 1)?;
    let merged = Merged::of(&sorted(first), &sorted(second));
    let (m, n) = (first.len(), second.len());
    let product = m * n;
    let statistic = real(merged.distance) / real(product);
    if product <= EXACT_PRODUCT {
        return Ok(Kolmogorov { statistic, p_value: exact(m, n, &merged), exact: true });
    }
    let root = (real(m) * real(n) / real(m + n)).sqrt();
    // SOURCE: M. A. Stephens, J. R. Statist. Soc. B 32, 1970.
    let scaled = (root + 0.12 + 0.11 / root) * statistic;
    Ok(Kolmogorov { statistic, p_value: limiting(scaled), exact: false })
}

/// The pooled sample: largest distance in units of 1/(m n), and where a run of equal values ends.
struct Merged {
    distance: usize,
    ends: Vec<bool>,
}

impl Merged {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let (m, n) = (first.len(), second.len());
        let (mut i, mut j, mut distance) = (0, 0, 0);
        let mut ends = vec![false; m + n + 1];
        while i < m || j < n {
            let value = match (first.get(i), second.get(j)) {
                (Some(left), Some(right)) => left.min(*right),
                (Some(value), None) | (None, Some(value)) => *value,
                (None, None) => break,
            };
            i += first[i..].iter().take_while(|other| **other <= value).count();
            j += second[j..].iter().take_while(|other| **other <= value).count();
            ends[i + j] = true;
            distance = distance.max((i * n).abs_diff(j * m));
        }
        Self { distance, ends }
    }
}

/// Probability that a random path through the lattice leaves the corridor at the end of a run of equal values.
fn exact(m: usize, n: usize, merged: &Merged) -> f64 {
    let outside = |i: usize, j: usize| merged.ends[i + j] && (i * n).abs_diff(j * m) >= merged.distance;
    if merged.distance == 0 {
        return 1.0;
    }
    let mut row = vec![0.0_f64; n + 1];
    for j in 1..=n {
        row[j] = if outside(0, j) { 1.0 } else { row[j - 1] };
    }
    for i in 1..=m {
        if outside(i, 0) {
            row[0] = 1.0;
        }
        for j in 1..=n {
            row[j] = if outside(i, j) {
                1.0
            } else {
                let total = real(i + j);
                real(i) / total * row[j] + real(j) / total * row[j - 1]
            };
        }
    }
    row[n].clamp(0.0, 1.0)
}

/// Survival function of Kolmogorov's limiting distribution.
fn limiting(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.0 {
        // The theta-transformed series converges fast for small x.
        let factor = (2.0 * PI).sqrt() / x;
        let sum: f64 = (1..=6_u32)
            .map(|k| {
                let odd = f64::from(2 * k - 1) * PI / x;
                libm::exp(-odd * odd / 8.0)
            })
            .sum();
        return (1.0 - factor * sum).clamp(0.0, 1.0);
    }
    let sum: f64 = (1..=12_u32)
        .map(|k| {
            let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
            sign * libm::exp(-2.0 * f64::from(k * k) * x * x)
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{kolmogorov_smirnov, limiting};
    use proptest::prelude::*;

    /// Complete separation of 3 from 3: two of the 20 orders are as extreme.
    #[test]
    fn complete_separation_has_the_probability_of_counting() {
        let found = kolmogorov_smirnov(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!((found.statistic - 1.0).abs() < 1e-15 && found.exact);
        assert!((found.p_value - 0.1).abs() < 1e-12);
    }

    /// Smirnov's table (1948): K(1.36) = 0.9505, K(1.63) = 0.9902, K(0.5) = 0.0361.
    #[test]
    fn the_limiting_distribution_has_its_printed_values() {
        for (x, below) in [(1.36, 0.950_5), (1.63, 0.990_2), (0.5, 0.036_1), (1.0, 0.730_0)] {
            assert!((1.0 - limiting(x) - below).abs() < 6e-5, "{x}: {}", 1.0 - limiting(x));
        }
        assert!((limiting(1.0 - 1e-12) - limiting(1.0)).abs() < 1e-9);
    }

    #[test]
    fn identical_and_constant_samples_do_not_differ() {
        let found = kolmogorov_smirnov(&[2.0; 9], &[2.0; 7]).unwrap();
        assert!(found.statistic < 1e-15 && (found.p_value - 1.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn probabilities_are_probabilities_and_sides_do_not_matter(
            first in prop::collection::vec(0_u8..20, 1..30), second in prop::collection::vec(0_u8..20, 1..30),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) =
                (first.iter().map(|v| f64::from(*v)).collect(), second.iter().map(|v| f64::from(*v)).collect());
            let found = kolmogorov_smirnov(&a, &b).unwrap();
            prop_assert!((0.0..=1.0).contains(&found.p_value));
            let other = kolmogorov_smirnov(&b, &a).unwrap();
            prop_assert!((found.p_value - other.p_value).abs() < 1e-9);
        }
    }
}
