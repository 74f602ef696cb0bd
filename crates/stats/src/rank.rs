//! Bootstrap of quantiles without resampling.
//!
//! The k-th smallest value of a resample of size n is the value of rank ceil(n U), where U is the k-th smallest of n
//! uniform numbers, distributed Beta(k, n - k + 1). Several ranks at once come from sums of independent gamma variates.

use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::error::StatsError;
use crate::interval::{Intervals, mirrored, percentile};
use crate::order::Position;
use crate::sample::{Plan, check_probability, check_values, real, sorted};
use crate::stream::{CHUNK, stream};
use crate::ziggurat::Normal;

/// Bootstraps quantiles of type 7 and the differences of pairs of them.
///
/// Gives one entry per probability, then one per pair (the quantile of the second minus that of the first). `BCa` and
/// studentised limits are not offered for quantiles and are not numbers.
///
/// # Errors
///
/// If the sample is empty or has a value that is not finite, a probability lies outside (0, 1), or the plan asks for nothing.
///
/// # Panics
///
/// If a pair names a probability that is not given.
pub fn quantile_bootstrap(
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
    let width = probabilities.len();
    let replicates = quantile_replicates(&sample, probabilities, plan);
    let estimates: Vec<f64> = probabilities.iter().map(|&p| crate::order::quantile(&sample, p)).collect();
    let column = |index: usize| replicates.iter().skip(index).step_by(width);
    let tails = plan.tails();
    let single = (0..width).map(|index| summary(estimates[index], column(index).copied().collect(), tails));
    let double = pairs.iter().map(|&(low, high)| {
        let differences = column(high).zip(column(low)).map(|(b, a)| b - a).collect();
        summary(estimates[high] - estimates[low], differences, tails)
    });
    Ok(single.chain(double).collect())
}

/// Quantiles of each resample of an ascending sample, row by row.
pub(crate) fn quantile_replicates(sample: &[f64], probabilities: &[f64], plan: &Plan) -> Vec<f64> {
    let ranks = Ranks::new(sample.len(), probabilities);
    let width = probabilities.len().max(1);
    let mut replicates = vec![0.0; plan.resamples * probabilities.len()];
    replicates.par_chunks_mut(CHUNK * width).enumerate().for_each(|(chunk, out)| {
        let mut draw = Draw::new(stream(plan.seed, plan.cell, chunk));
        for row in out.chunks_exact_mut(width) {
            ranks.draw(sample, &mut draw, row);
        }
    });
    replicates
}

pub(crate) fn summary(estimate: f64, mut replicates: Vec<f64>, tails: (f64, f64)) -> Intervals {
    let middle = percentile(&mut replicates, tails);
    let none = (f64::NAN, f64::NAN);
    Intervals {
        estimate,
        percentile: middle,
        basic: mirrored(estimate, middle),
        bca: none,
        studentised: none,
    }
}

/// Ranks needed by a set of quantiles, ascending and distinct.
struct Ranks {
    count: usize,
    /// What lies between each needed rank and the one before it, then behind the last.
    gaps: Vec<Gamma>,
    /// Places of the gaps of shape 1.
    inverted: Vec<usize>,
    quantiles: Vec<Between>,
}

/// A quantile by the places of its ranks among the needed ones.
struct Between {
    low: usize,
    high: usize,
    share: f64,
}

impl Ranks {
    fn new(count: usize, probabilities: &[f64]) -> Self {
        let positions: Vec<Position> = probabilities.iter().map(|&p| Position::of(count, p)).collect();
        let mut needed: Vec<usize> = positions
            .iter()
            .flat_map(|position| [Some(position.rank), (position.share > 0.0).then_some(position.rank + 1)])
            .flatten()
            .collect();
        needed.sort_unstable();
        needed.dedup();
        let before = std::iter::once(0).chain(needed.iter().copied());
        let after = needed.iter().copied().chain([count + 1]);
        let gaps: Vec<Gamma> = before.zip(after).map(|(before, after)| Gamma::new(after - before)).collect();
        let inverted =
            gaps.iter().enumerate().filter(|(_, gap)| gap.shape <= 1).map(|(place, _)| place).collect();
        let quantiles = positions.iter().map(|position| {
            let low = needed.partition_point(|&needed| needed < position.rank);
            Between { low, high: low + usize::from(position.share > 0.0), share: position.share }
        });
        Self { count, gaps, inverted, quantiles: quantiles.collect() }
    }

    fn draw(&self, sample: &[f64], draw: &mut Draw, out: &mut [f64]) {
        let mut values = std::mem::take(&mut draw.values);
        values.clear();
        values.extend(self.gaps.iter().map(|gap| gap.draw(draw)));
        // Logarithms that nothing waits for, side by side.
        for &place in &self.inverted {
            values[place] = self.gaps[place].finish(values[place]);
        }
        let mut total = 0.0;
        for value in &mut values {
            total += *value;
            *value = total;
        }
        let count = real(self.count);
        for value in &mut values[..self.gaps.len() - 1] {
            *value = sample[index_at(*value / total * count).min(self.count - 1)];
        }
        for (quantile, slot) in self.quantiles.iter().zip(out) {
            let low = values[quantile.low];
            let high = values[quantile.high];
            *slot = if quantile.share > 0.0 { low + quantile.share * (high - low) } else { low };
        }
        draw.values = values;
    }
}

/// One less than the place rounded up, at least 0: the index of the value that holds the place.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "places lie between 0 and the number of values; signed numbers convert in one instruction"
)]
fn index_at(place: f64) -> usize {
    let below = place as i64;
    (below - i64::from(below as f64 >= place)).max(0) as usize
}

/// Gamma variates of whole shape and scale 1.
///
/// SOURCE: G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000; shape 1 by inversion.
struct Gamma {
    shape: usize,
    size: f64,
    step: f64,
}

impl Gamma {
    fn new(shape: usize) -> Self {
        let size = real(shape) - 1.0 / 3.0;
        Self { shape, size, step: 1.0 / (9.0 * size).sqrt() }
    }

    /// Draws what [`Self::finish`] takes.
    fn draw(&self, draw: &mut Draw) -> f64 {
        if self.shape <= 1 {
            return draw.uniform();
        }
        loop {
            let x = draw.normal();
            let v = (1.0 + self.step * x).powi(3);
            if v <= 0.0 {
                continue;
            }
            let u = draw.uniform();
            let square = x * x;
            if u < 1.0 - 0.0331 * square * square
                || libm::log(u) < 0.5 * square + self.size * (1.0 - v + libm::log(v))
            {
                return self.size * v;
            }
        }
    }

    fn finish(&self, drawn: f64) -> f64 {
        if self.shape <= 1 { -libm::log(drawn) } else { drawn }
    }
}

/// A stream that also gives normal variates.
struct Draw {
    normals: Normal,
    /// Room for one resample.
    values: Vec<f64>,
}

impl Draw {
    fn new(generator: Pcg64) -> Self {
        Self { normals: Normal::new(generator), values: Vec::with_capacity(16) }
    }

    #[inline]
    fn uniform(&mut self) -> f64 {
        self.normals.uniform()
    }

    #[inline]
    fn normal(&mut self) -> f64 {
        self.normals.next()
    }
}

#[cfg(test)]
mod tests {
    use super::{Draw, Gamma, quantile_bootstrap};
    use crate::resample::quantile_resampling;
    use crate::sample::Plan;
    use crate::stream::stream;

    const PLAN: Plan = Plan { resamples: 40_000, level: 0.95, seed: 5, cell: 1 };

    fn skewed(count: u32) -> Vec<f64> {
        (0..count)
            .map(|i| {
                libm::exp(2.0 * crate::special::normal_quantile((f64::from(i) + 0.5) / f64::from(count)))
            })
            .collect()
    }

    #[test]
    fn gamma_variates_have_mean_and_variance_equal_to_their_shape() {
        let mut draw = Draw::new(stream(1, 1, 1));
        for shape in [1_u32, 2, 7, 250] {
            let gamma = Gamma::new(shape as usize);
            let values: Vec<f64> = (0..40_000).map(|_| gamma.finish(gamma.draw(&mut draw))).collect();
            let expected = f64::from(shape);
            let error = 5.0 * (expected / 40_000.0).sqrt();
            assert!((crate::mean(&values) - expected).abs() < error, "{shape}");
            let variance = crate::standard_deviation(&values).powi(2);
            assert!((variance / expected - 1.0).abs() < 0.06, "{shape}: {variance}");
        }
    }

    /// Resampling by brute force is the oracle.
    #[test]
    fn limits_agree_with_resampling() {
        for count in [10, 37, 200] {
            let values = skewed(count);
            let exact = quantile_bootstrap(&values, &[0.25, 0.5, 0.75], &[(0, 2)], &PLAN).unwrap();
            let drawn = quantile_resampling(&values, &[0.25, 0.5, 0.75], &[(0, 2)], &PLAN).unwrap();
            for (a, b) in exact.iter().zip(&drawn) {
                assert_eq!(a.estimate.to_bits(), b.estimate.to_bits());
                for (x, y) in [(a.percentile.0, b.percentile.0), (a.percentile.1, b.percentile.1)] {
                    assert!((x - y).abs() <= 0.03 * y.abs(), "{count}: {x} against {y}");
                }
            }
        }
    }

    /// Exact: P(median* <= x_(j)) is a binomial tail, so the percentile limits of n = 15 are known order statistics.
    #[test]
    fn limits_of_the_median_are_binomial_tails() {
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        let found = quantile_bootstrap(&values, &[0.5], &[], &Plan { level: 0.9, ..PLAN }).unwrap();
        // P(Bin(15, j/15) >= 8) is 0.0255 at j = 4 and 0.0882 at j = 5; symmetric at the upper end.
        assert_eq!(found[0].percentile, (5.0, 11.0));
        assert_eq!(found[0].basic, (5.0, 11.0));
    }
}
