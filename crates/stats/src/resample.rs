//! Bootstrap by resampling, for statistics of order that have no short cut.
//!
//! A resample is kept as counts over the sorted sample: its order statistics are found by walking, not by sorting.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::interval::Intervals;
use crate::order::{Position, quantile};
use crate::rank::summary;
use crate::registers::Registers;
use crate::sample::{Plan, check_probability, check_values, sorted};
use crate::stream::{CHUNK, Indices, STEP, stream};

/// Bootstraps quantiles and differences of pairs of them by drawing whole resamples.
///
/// # Errors
///
/// As [`crate::quantile_bootstrap`].
///
/// # Panics
///
/// If a pair names a probability that is not given.
pub fn quantile_resampling(
    values: &[f64],
    probabilities: &[f64],
    pairs: &[(usize, usize)],
    plan: &Plan,
) -> Result<Vec<Intervals>, StatsError> {
    plan.check()?;
    check_values(values, 1)?;
    for &p in probabilities {
        check_probability("probability", p)?;
    }
    let sample = sorted(values);
    let positions: Vec<Position> = probabilities.iter().map(|&p| Position::of(sample.len(), p)).collect();
    let width = probabilities.len();
    let replicates = resample(&sample, plan, width, |resample, row| {
        for (slot, position) in row.iter_mut().zip(&positions) {
            *slot = resample.at(*position);
        }
    });
    let estimates: Vec<f64> = probabilities.iter().map(|&p| quantile(&sample, p)).collect();
    let column = |index: usize| replicates.iter().skip(index).step_by(width);
    let tails = plan.tails();
    let single = (0..width).map(|index| summary(estimates[index], column(index).copied().collect(), tails));
    let double = pairs.iter().map(|&(low, high)| {
        let differences = column(high).zip(column(low)).map(|(b, a)| b - a).collect();
        summary(estimates[high] - estimates[low], differences, tails)
    });
    Ok(single.chain(double).collect())
}

/// Intervals of the robust pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of the median.
    pub median: Intervals,
    /// Of the median absolute deviation from the median, unscaled.
    pub deviation: Intervals,
}

/// Bootstraps the median absolute deviation, and the median with it.
///
/// # Errors
///
/// If the sample is empty or has a value that is not finite, or the plan asks for nothing.
pub fn deviation_bootstrap(values: &[f64], plan: &Plan) -> Result<Spread, StatsError> {
    plan.check()?;
    check_values(values, 1)?;
    let sample = sorted(values);
    let middle = Position::of(sample.len(), 0.5);
    let replicates = resample(&sample, plan, 2, |resample, row| {
        row[0] = resample.at(middle);
        row[1] = resample.distance_at(row[0], middle);
    });
    let tails = plan.tails();
    let column = |index: usize| replicates.iter().skip(index).step_by(2).copied().collect();
    Ok(Spread {
        median: summary(quantile(&sample, 0.5), column(0), tails),
        deviation: summary(crate::order::median_absolute_deviation(&sample), column(1), tails),
    })
}

fn resample(
    sample: &[f64],
    plan: &Plan,
    width: usize,
    statistic: impl Fn(&Resample<'_>, &mut [f64]) + Sync,
) -> Vec<f64> {
    let count = sample.len();
    let bound = u32::try_from(count).unwrap_or(u32::MAX);
    let registers = Registers::widest();
    let mut replicates = vec![0.0; plan.resamples * width];
    replicates.par_chunks_mut(CHUNK * width.max(1)).enumerate().for_each(|(chunk, out)| {
        let mut indices = Indices::new(&mut stream(plan.seed, plan.cell, chunk), bound);
        let mut drawn = vec![0_u32; count.next_multiple_of(STEP)];
        let mut counts = vec![0_u32; count];
        for row in out.chunks_exact_mut(width) {
            indices.fill(registers, &mut drawn);
            counts.fill(0);
            for &index in &drawn[..count] {
                counts[index as usize] += 1;
            }
            statistic(&Resample { sample, counts: &counts }, row);
        }
    });
    replicates
}

/// Values in ascending order, and how often each was drawn.
pub(crate) struct Resample<'a> {
    pub(crate) sample: &'a [f64],
    pub(crate) counts: &'a [u32],
}

impl Resample<'_> {
    /// The quantile at a position of the resample.
    pub(crate) fn at(&self, position: Position) -> f64 {
        let mut seen = 0_usize;
        let mut walk = self.sample.iter().zip(self.counts);
        let mut current = f64::NAN;
        while seen < position.rank {
            let Some((&value, &count)) = walk.next() else { return current };
            current = value;
            seen += count as usize;
        }
        if position.share <= 0.0 || seen > position.rank {
            return current;
        }
        let next = walk.find(|(_, count)| **count > 0).map_or(current, |(&value, _)| value);
        current + position.share * (next - current)
    }

    /// The quantile at a position of the distances from a centre: both sides are sorted, so they are merged.
    pub(crate) fn distance_at(&self, centre: f64, position: Position) -> f64 {
        let start = self.sample.partition_point(|&value| value < centre);
        let mut walk = Outward { resample: self, left: start, right: start, centre };
        let mut seen = 0_usize;
        let mut current = f64::NAN;
        while seen < position.rank {
            let Some((distance, count)) = walk.next() else { return current };
            current = distance;
            seen += count;
        }
        if position.share <= 0.0 || seen > position.rank {
            return current;
        }
        let next = walk.find(|(_, count)| *count > 0).map_or(current, |(distance, _)| distance);
        current + position.share * (next - current)
    }
}

/// Distances from a centre in ascending order, with how often each was drawn.
struct Outward<'a> {
    resample: &'a Resample<'a>,
    left: usize,
    right: usize,
    centre: f64,
}

impl Iterator for Outward<'_> {
    type Item = (f64, usize);

    fn next(&mut self) -> Option<(f64, usize)> {
        let sample = self.resample.sample;
        let below = (self.left > 0).then(|| self.centre - sample[self.left - 1]);
        let above = sample.get(self.right).map(|value| value - self.centre);
        let take_left = match (below, above) {
            (Some(low), Some(high)) => low <= high,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        let (distance, index) = if take_left {
            self.left -= 1;
            (below?, self.left)
        } else {
            self.right += 1;
            (above?, self.right - 1)
        };
        Some((distance, self.resample.counts[index] as usize))
    }
}

#[cfg(test)]
fn expanded(sample: &[f64], counts: &[u32]) -> Vec<f64> {
    sample
        .iter()
        .zip(counts)
        .flat_map(|(&value, &count)| std::iter::repeat_n(value, count as usize))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Resample, deviation_bootstrap, expanded};
    use crate::order::{Position, median_absolute_deviation, quantile};
    use crate::sample::{Plan, sorted};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn walking_counts_equals_sorting_the_resample(
            values in prop::collection::vec(0_u8..30, 1..40), picks in prop::collection::vec(0_usize..1000, 40),
        ) {
            let sample = sorted(&values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>());
            let mut counts = vec![0_u32; sample.len()];
            for pick in &picks[..sample.len()] {
                counts[pick % sample.len()] += 1;
            }
            let full = expanded(&sample, &counts);
            let resample = Resample { sample: &sample, counts: &counts };
            let middle = Position::of(full.len(), 0.5);
            let centre = resample.at(middle);
            prop_assert!((centre - quantile(&full, 0.5)).abs() < 1e-12);
            for p in [0.1, 0.25, 0.9] {
                let found = resample.at(Position::of(full.len(), p));
                prop_assert!((found - quantile(&full, p)).abs() < 1e-12);
            }
            let spread = resample.distance_at(centre, middle);
            prop_assert!((spread - median_absolute_deviation(&full)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_interval_of_the_deviation_encloses_it() {
        let values: Vec<f64> = (0..200_u32).map(|i| f64::from(i * i % 101)).collect();
        let plan = Plan { resamples: 2000, level: 0.95, seed: 1, cell: 1 };
        let found = deviation_bootstrap(&values, &plan).unwrap().deviation;
        assert!(found.percentile.0 < found.estimate && found.estimate < found.percentile.1);
    }
}
