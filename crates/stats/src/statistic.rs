//! Statistics of a sample that is kept as counts over its distinct places in sorted order.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use crate::beta::beta_cdf;
use crate::error::StatsError;
use crate::order::Position;
use crate::resample::Resample;
use crate::sample::{check_probability, real, whole};

/// What is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Standard deviation, divisor n - 1.
    Deviation,
    /// Standard deviation over mean.
    Variation,
    /// Quantile of type 7 at a probability.
    Quantile(f64),
    /// Harrell-Davis quantile at a probability.
    HarrellDavis(f64),
    /// Quantile of type 7 at the second probability less that at the first.
    Range(f64, f64),
    /// Quantile of type 7 at the second probability over that at the first.
    TailRatio(f64, f64),
    /// Median absolute deviation from the median, unscaled.
    MedianDeviation,
    /// Mean without the given share of the values at each end (whole values: the share is rounded down).
    TrimmedMean(f64),
}

impl Statistic {
    /// The smallest number of values for which it is defined.
    pub(crate) const fn fewest(self) -> usize {
        match self {
            Self::Deviation | Self::Variation => 2,
            _ => 1,
        }
    }

    pub(crate) const fn is_moment(self) -> bool {
        matches!(self, Self::Mean | Self::Deviation | Self::Variation)
    }

    /// Probabilities of the quantiles it is made of, if it is made of quantiles of type 7 only.
    pub(crate) fn probabilities(self) -> Option<Vec<f64>> {
        match self {
            Self::Quantile(p) => Some(vec![p]),
            Self::Range(low, high) | Self::TailRatio(low, high) => Some(vec![low, high]),
            _ => None,
        }
    }

    /// Its value from the quantiles at its probabilities.
    pub(crate) fn combine(self, quantiles: &[f64]) -> f64 {
        match (self, quantiles) {
            (Self::Range(..), [low, high]) => high - low,
            (Self::TailRatio(..), [low, high]) => high / low,
            (_, [value, ..]) => *value,
            _ => f64::NAN,
        }
    }

    pub(crate) fn check(self) -> Result<(), StatsError> {
        match self {
            Self::Quantile(p) | Self::HarrellDavis(p) => check_probability("probability", p),
            Self::Range(low, high) | Self::TailRatio(low, high) => {
                check_probability("probability", low)?;
                check_probability("probability", high)
            }
            Self::TrimmedMean(share) if !(0.0..0.5).contains(&share) => {
                Err(StatsError::Share { value: share })
            }
            _ => Ok(()),
        }
    }
}

/// Evaluates one statistic over many resamples; weights are computed once per size of a resample.
#[derive(Debug)]
pub(crate) struct Evaluator {
    statistic: Statistic,
    weights: RwLock<HashMap<usize, Arc<Vec<f64>>>>,
}

impl Evaluator {
    pub(crate) fn new(statistic: Statistic) -> Self {
        Self { statistic, weights: RwLock::new(HashMap::new()) }
    }

    /// The statistic of a resample of `total` values; not a number where it is not defined.
    pub(crate) fn value(&self, resample: &Resample<'_>, total: usize) -> f64 {
        if total < self.statistic.fewest() {
            return f64::NAN;
        }
        if let Some(probabilities) = self.statistic.probabilities() {
            let mut found = [f64::NAN; 2];
            for (slot, p) in found.iter_mut().zip(&probabilities) {
                *slot = resample.at(Position::of(total, *p));
            }
            return self.statistic.combine(&found[..probabilities.len()]);
        }
        match self.statistic {
            Statistic::HarrellDavis(p) => harrell_davis(resample, &self.weights_of(total, p)),
            Statistic::MedianDeviation => {
                let middle = Position::of(total, 0.5);
                resample.distance_at(resample.at(middle), middle)
            }
            Statistic::TrimmedMean(share) => trimmed_mean(resample, total, share),
            moment => moments(resample, total, moment),
        }
    }

    fn weights_of(&self, total: usize, p: f64) -> Arc<Vec<f64>> {
        let known = self.weights.read().ok().and_then(|table| table.get(&total).cloned());
        known.unwrap_or_else(|| {
            let made = Arc::new(harrell_davis_edges(total, p));
            if let Ok(mut table) = self.weights.write() {
                table.insert(total, Arc::clone(&made));
            }
            made
        })
    }
}

/// Distribution function of Beta((n + 1) p, (n + 1)(1 - p)) at 0, 1/n, ..., 1: weights are its increments.
///
/// Source: F. E. Harrell, C. E. Davis, Biometrika 69, 1982, eq. 1.
fn harrell_davis_edges(count: usize, p: f64) -> Vec<f64> {
    let (a, b) = ((real(count) + 1.0) * p, (real(count) + 1.0) * (1.0 - p));
    let spread = (p * (1.0 - p) / (real(count) + 2.0)).sqrt();
    let is_normal = a.min(b) > 50.0;
    (0..=count)
        .map(|place| {
            let x = real(place) / real(count);
            // Twelve standard deviations off the rest is below 1e-15 for parameters this large.
            if is_normal && (x - p).abs() > 12.0 * spread {
                return if x > p { 1.0 } else { 0.0 };
            }
            beta_cdf(x, a, b)
        })
        .collect()
}

fn harrell_davis(resample: &Resample<'_>, edges: &[f64]) -> f64 {
    let mut seen = 0;
    let mut sum = 0.0;
    for (&value, &count) in resample.sample.iter().zip(resample.counts) {
        if count > 0 {
            let next = seen + count as usize;
            sum += (edges[next] - edges[seen]) * value;
            seen = next;
        }
    }
    sum
}

/// As R's `mean(x, trim =)`: the number cut at each end is rounded down.
fn trimmed_mean(resample: &Resample<'_>, total: usize, share: f64) -> f64 {
    let cut = whole(real(total) * share);
    let (first, end) = (cut, total - cut);
    let mut seen = 0_usize;
    let mut sum = 0.0;
    for (&value, &count) in resample.sample.iter().zip(resample.counts) {
        let next = seen + count as usize;
        let kept = next.min(end).saturating_sub(seen.max(first));
        sum += real(kept) * value;
        seen = next;
    }
    sum / real(end - first)
}

fn moments(resample: &Resample<'_>, total: usize, statistic: Statistic) -> f64 {
    let pairs = || resample.sample.iter().zip(resample.counts).map(|(&x, &count)| (x, f64::from(count)));
    let count = real(total);
    let mean = pairs().map(|(x, times)| times * x).sum::<f64>() / count;
    if statistic == Statistic::Mean {
        return mean;
    }
    let squares: f64 = pairs().map(|(x, times)| times * (x - mean) * (x - mean)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    if statistic == Statistic::Variation { deviation / mean } else { deviation }
}

#[cfg(test)]
mod tests {
    use super::{Evaluator, Statistic};
    use crate::resample::Resample;

    fn of(statistic: Statistic, sample: &[f64], counts: &[u32]) -> f64 {
        let total = counts.iter().sum::<u32>() as usize;
        Evaluator::new(statistic).value(&Resample { sample, counts }, total)
    }

    const SAMPLE: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 100.0];

    #[test]
    fn counts_stand_for_repeated_values() {
        let counts = [2, 0, 1, 1, 0];
        // 1, 1, 4, 8
        for (statistic, expected) in [
            (Statistic::Mean, 3.5),
            (Statistic::Deviation, 11.0_f64.sqrt()),
            (Statistic::Variation, 11.0_f64.sqrt() / 3.5),
            (Statistic::Quantile(0.5), 2.5),
            (Statistic::Range(0.25, 0.75), 4.0),
            (Statistic::TailRatio(0.25, 0.75), 5.0),
            (Statistic::MedianDeviation, 1.5),
            (Statistic::TrimmedMean(0.25), 2.5),
        ] {
            let found = of(statistic, &SAMPLE, &counts);
            assert!((found - expected).abs() < 1e-12, "{statistic:?}: {found}");
        }
    }

    /// R: `mean(c(1, 2, 4, 8, 100), trim = 0.2)` is 14/3; nothing is cut below one whole value.
    #[test]
    fn the_trimmed_mean_cuts_whole_values() {
        assert!((of(Statistic::TrimmedMean(0.2), &SAMPLE, &[1; 5]) - 14.0 / 3.0).abs() < 1e-12);
        assert!((of(Statistic::TrimmedMean(0.19), &SAMPLE, &[1; 5]) - 23.0).abs() < 1e-12);
        assert!((of(Statistic::TrimmedMean(0.49), &SAMPLE, &[1; 5]) - 4.0).abs() < 1e-12);
    }

    /// Symmetric weights: the median of a symmetric sample is its centre, and weights add up to 1.
    #[test]
    fn harrell_davis_weights_are_symmetric_and_complete() {
        let sample = [-3.0, -1.0, 0.0, 1.0, 3.0];
        assert!(of(Statistic::HarrellDavis(0.5), &sample, &[1; 5]).abs() < 1e-14);
        let constant = vec![7.0; 400];
        assert!((of(Statistic::HarrellDavis(0.9), &constant, &[1; 400]) - 7.0).abs() < 1e-12);
    }

    #[test]
    fn a_statistic_that_is_not_defined_is_not_a_number() {
        assert!(of(Statistic::Deviation, &[1.0], &[1]).is_nan());
        assert!(of(Statistic::Mean, &[1.0], &[0]).is_nan());
    }
}
