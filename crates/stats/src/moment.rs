//! Mean, standard deviation and coefficient of variation, bootstrapped together in one pass.
//!
//! Each value is stored as the row (d, d^2, d^3, d^4) of its standardised size d. The four sums over a resample
//! give its mean and standard deviation and the standard errors of both, hence percentile, basic, `BCa` and
//! bootstrap-t intervals at the price of one vector load and addition per draw.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::interval::{Intervals, acceleration, bca, mirrored, percentile};
use crate::sample::{Plan, check_values, real, sorted, split};
use crate::statistic::Statistic;
use crate::stream::CHUNK;
use crate::sum::{exact_sum, mean, standard_deviation};

mod sums;

use sums::{Row, Sums};

/// Intervals of the three moment statistics of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MomentIntervals {
    /// Of the mean.
    pub mean: Intervals,
    /// Of the standard deviation (divisor n - 1).
    pub standard_deviation: Intervals,
    /// Of standard deviation / mean; studentised limits are not numbers where the mean is not positive.
    pub variation: Intervals,
}

/// Bootstraps one sample.
///
/// The studentised interval of the mean uses the usual standard error; those of the standard deviation and of the coefficient of
/// variation work on the logarithm with delta-method errors from the third and fourth moment.
///
/// # Errors
///
/// If the sample has fewer than 2 values or one that is not finite, or the plan asks for nothing.
pub fn moment_bootstrap(values: &[f64], plan: &Plan) -> Result<MomentIntervals, StatsError> {
    plan.check()?;
    check_values(values, 2)?;
    Ok(Sample::new(values).bootstrap(plan))
}

/// Bootstraps many samples, laid out one after the other; group `g` uses cell `plan.cell + g`.
///
/// # Errors
///
/// As [`moment_bootstrap`], for the first bad group, or if the lengths do not add up.
pub fn moment_bootstrap_groups(
    values: &[f64],
    lengths: &[usize],
    plan: &Plan,
) -> Result<Vec<MomentIntervals>, StatsError> {
    let groups = split(values, lengths)?;
    groups
        .par_iter()
        .enumerate()
        .map(|(index, group)| {
            let cell = plan.cell.wrapping_add(index as u64);
            moment_bootstrap(group, &Plan { cell, ..*plan })
        })
        .collect()
}

/// Statistics of one resample: mean and sd in units of the sample's sd, cv, then the standard errors of log sd and log cv.
type Replicate = [f64; 5];

/// Standard error of a moment statistic, then the statistic of each resample with its own error, all in natural units.
pub(crate) fn moment_replicates(values: &[f64], statistic: Statistic, plan: &Plan) -> (f64, Vec<(f64, f64)>) {
    let sample = Sample::new(values);
    let errors = sample.errors();
    let root = real(values.len()).sqrt();
    let natural = |row: &Replicate| {
        let [mean, deviation, variation, deviation_error, variation_error] = *row;
        match statistic {
            Statistic::Mean => (sample.mean + mean * sample.deviation, deviation * sample.deviation / root),
            Statistic::Deviation => {
                let found = deviation * sample.deviation;
                (found, found * deviation_error)
            }
            _ => (variation, variation * variation_error),
        }
    };
    let error = match statistic {
        Statistic::Mean => sample.deviation / root,
        Statistic::Deviation => sample.deviation * errors.0,
        _ => sample.deviation / sample.mean * errors.1,
    };
    (error, sample.replicates(plan).iter().map(natural).collect())
}

struct Sample {
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
    rows: Vec<Row>,
}

impl Sample {
    fn new(values: &[f64]) -> Self {
        let values = sorted(values);
        let centre = mean(&values);
        let deviation = standard_deviation(&values);
        let rows = values
            .iter()
            .map(|value| {
                let d = (value - centre) / deviation;
                let square = d * d;
                Row([d, square, square * d, square * square])
            })
            .collect();
        Self { values, mean: centre, deviation, rows }
    }

    fn bootstrap(&self, plan: &Plan) -> MomentIntervals {
        let variation = self.deviation / self.mean;
        if self.deviation <= 0.0 {
            return MomentIntervals {
                mean: Intervals::point(self.mean),
                standard_deviation: Intervals::point(self.deviation),
                variation: Intervals::point(variation),
            };
        }
        let replicates = self.replicates(plan);
        let column = |of: &dyn Fn(&Replicate) -> f64| -> Vec<f64> {
            replicates.iter().map(of).filter(|value| value.is_finite()).collect()
        };
        let tails = plan.tails();
        let errors = self.errors();
        let root = real(self.rows.len()).sqrt();
        let mean = self.location(column(&|row| row[0]), column(&|row| row[0] * root / row[1]), tails);
        let mut t = column(&|row| libm::log(row[1]) / row[3]);
        let standard_deviation = self.dispersion(column(&|row| row[1]), &mut t, errors.0, tails);
        let mut t = column(&|row| libm::log(row[2] / variation) / row[4]);
        let variation = self.relative(column(&|row| row[2]), &mut t, errors.1, tails);
        MomentIntervals { mean, standard_deviation, variation }
    }

    fn replicates(&self, plan: &Plan) -> Vec<Replicate> {
        let mut replicates: Vec<Replicate> = vec![[0.0; 5]; plan.resamples];
        replicates
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| self.fill(&mut Sums::new(&self.rows, plan, chunk), out));
        replicates
    }

    fn location(&self, mut plain: Vec<f64>, mut t: Vec<f64>, tails: (f64, f64)) -> Intervals {
        let count = real(self.values.len());
        let cubes = exact_sum(self.rows.iter().map(|row| row.0[2]));
        // Leave-one-out means are linear in the values: the acceleration is the skewness / (6 sqrt n).
        let acceleration = cubes / (6.0 * (count - 1.0) * (count - 1.0).sqrt());
        let unit = |limits: (f64, f64)| {
            (self.mean + limits.0 * self.deviation, self.mean + limits.1 * self.deviation)
        };
        let middle = percentile(&mut plain, tails);
        let student = percentile(&mut t, tails);
        let root = count.sqrt();
        Intervals {
            estimate: self.mean,
            percentile: unit(middle),
            basic: unit(mirrored(0.0, middle)),
            bca: unit(bca(&mut plain, 0.0, acceleration, tails)),
            studentised: unit((-student.1 / root, -student.0 / root)),
        }
    }

    /// Intervals of the standard deviation; replicates come in units of the sample's.
    fn dispersion(
        &self,
        mut replicates: Vec<f64>,
        t: &mut [f64],
        error: f64,
        tails: (f64, f64),
    ) -> Intervals {
        let scaled = |limits: (f64, f64)| (limits.0 * self.deviation, limits.1 * self.deviation);
        let middle = percentile(&mut replicates, tails);
        let student = percentile(t, tails);
        Intervals {
            estimate: self.deviation,
            percentile: scaled(middle),
            basic: scaled(mirrored(1.0, middle)),
            bca: scaled(bca(&mut replicates, 1.0, self.deviation_acceleration(false), tails)),
            studentised: scaled((libm::exp(-student.1 * error), libm::exp(-student.0 * error))),
        }
    }

    /// Intervals of the coefficient of variation.
    fn relative(&self, mut replicates: Vec<f64>, t: &mut [f64], error: f64, tails: (f64, f64)) -> Intervals {
        let estimate = self.deviation / self.mean;
        let middle = percentile(&mut replicates, tails);
        let student = percentile(t, tails);
        // A negative cv has no logarithm.
        let scale = if estimate > 0.0 { estimate } else { f64::NAN };
        Intervals {
            estimate,
            percentile: middle,
            basic: mirrored(estimate, middle),
            bca: bca(&mut replicates, estimate, self.deviation_acceleration(true), tails),
            studentised: (scale * libm::exp(-student.1 * error), scale * libm::exp(-student.0 * error)),
        }
    }

    /// Standard errors of log sd and log cv of the sample.
    fn errors(&self) -> (f64, f64) {
        let count = real(self.rows.len());
        let sum = |power: usize| exact_sum(self.rows.iter().map(|row| row.0[power]));
        let moments = Moments::of([sum(0), sum(1), sum(2), sum(3)], count);
        let variation = self.deviation / self.mean;
        (moments.log_deviation_error(count), moments.log_variation_error(variation, count))
    }

    /// Acceleration of the standard deviation, or of the coefficient of variation, from closed-form leave-one-out values.
    fn deviation_acceleration(&self, relative: bool) -> f64 {
        let count = real(self.rows.len());
        if self.rows.len() < 3 {
            return 0.0;
        }
        let left: Vec<f64> = self
            .rows
            .iter()
            .map(|row| {
                let [d, square, ..] = row.0;
                let shift = -d / (count - 1.0);
                let variance = ((count - 1.0) - square - (count - 1.0) * shift * shift) / (count - 2.0);
                let deviation = variance.max(0.0).sqrt() * self.deviation;
                if relative { deviation / (self.mean + shift * self.deviation) } else { deviation }
            })
            .collect();
        acceleration(&left)
    }

    fn fill(&self, sums: &mut Sums<'_>, out: &mut [Replicate]) {
        let count = real(self.rows.len());
        for replicate in out {
            let moments = Moments::of(sums.next(), count);
            let deviation = moments.deviation(count);
            let variation = deviation * self.deviation / (self.mean + moments.mean * self.deviation);
            *replicate = [
                moments.mean,
                deviation,
                variation,
                moments.log_deviation_error(count),
                moments.log_variation_error(variation, count),
            ];
        }
    }
}

/// Central moments of a resample in units of the sample's standard deviation.
struct Moments {
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl Moments {
    fn of(sums: [f64; 4], count: f64) -> Self {
        let [a, b, c, d] = sums.map(|sum| sum / count);
        let second = (b - a * a).max(0.0);
        let third = c - 3.0 * a * b + 2.0 * a * a * a;
        let fourth = d - 4.0 * a * c + 6.0 * a * a * b - 3.0 * a * a * a * a;
        Self { mean: a, second, third, fourth }
    }

    fn deviation(&self, count: f64) -> f64 {
        (self.second * count / (count - 1.0)).sqrt()
    }

    fn log_deviation_error(&self, count: f64) -> f64 {
        let kurtosis = self.fourth / (self.second * self.second);
        // The floor keeps two-point resamples (kurtosis 1) from dividing by zero.
        ((kurtosis - 1.0).max(1e-9) / (4.0 * count)).sqrt()
    }

    fn log_variation_error(&self, variation: f64, count: f64) -> f64 {
        let kurtosis = self.fourth / (self.second * self.second);
        let skewness = self.third / (self.second * self.second.sqrt());
        let variance = (kurtosis - 1.0) / 4.0 + variation * variation - skewness * variation;
        (variance.max(1e-9) / count).sqrt()
    }
}

#[cfg(test)]
mod tests;
