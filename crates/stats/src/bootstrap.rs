//! Bootstrap intervals of any statistic under any scheme, of one sample and of the contrast of two.

use crate::error::StatsError;
use crate::interval::{Interval, Intervals, bca, mirrored, percentile};
use crate::order::Position;
use crate::order_interval::exact_percentile;
use crate::replicate::{Jackknife, Replicates};
use crate::sample::{Plan, real};
use crate::scheme::{Design, Kind, Scheme};
use crate::statistic::Statistic;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The statistic.
    pub statistic: Statistic,
    /// Whether `BCa` limits are wanted; they need the statistic without each unit. Not numbers otherwise.
    pub bca: bool,
}

/// Values with what is drawn from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleOf<'a> {
    /// The values, in recorded order.
    pub values: &'a [f64],
    /// What is drawn as a whole.
    pub scheme: Scheme<'a>,
}

/// How two samples are set against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contrast {
    /// The second less the first.
    Difference,
    /// The second over the first.
    Ratio,
}

/// Intervals with the number of resamples for which the statistic was not defined; these are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrapped {
    /// Estimate and limits.
    pub intervals: Intervals,
    /// Resamples without a value (0 / 0).
    pub undefined: usize,
}

/// Bootstraps one statistic of one sample.
///
/// Studentised limits exist for mean, standard deviation and coefficient of variation, the latter two on the logarithm. Percentile
/// limits of a quantile that is a single order statistic of independent values are exact, without resampling error.
///
/// # Errors
///
/// If the sample is too small for the statistic, has a value that is not finite or labels that do not fit, or the plan asks
/// for nothing.
pub fn bootstrap(sample: SampleOf<'_>, question: &Question, plan: &Plan) -> Result<Bootstrapped, StatsError> {
    let design = Design::new(sample.values, sample.scheme)?;
    let found = Replicates::new(&design, question.statistic, question.jackknife(), plan)?;
    if design.is_constant() {
        return Ok(Bootstrapped { intervals: Intervals::point(found.estimate), undefined: 0 });
    }
    let scale = match question.statistic {
        Statistic::Deviation | Statistic::Variation => Scale::Logarithm,
        _ => Scale::Plain,
    };
    let pairs = Pairs {
        estimate: found.estimate,
        error: found.error,
        values: found.values,
        errors: found.errors,
        left_out: found.left_out,
        scale,
    };
    let mut all = pairs.intervals(question, plan.tails());
    if let (Statistic::Quantile(p), Kind::Plain) = (question.statistic, &design.kind) {
        let position = Position::of(design.sorted.len(), p);
        if position.share <= 0.0 {
            let exact = exact_percentile(&design.sorted, position.rank, plan.tails());
            all.intervals.percentile = exact;
            all.intervals.basic = mirrored(all.intervals.estimate, exact);
        }
    }
    Ok(all)
}

/// Tells the stream of the second sample from that of the first.
const SECOND: u64 = 1 << 63;

/// Bootstraps the contrast of one statistic of two independent samples; each has its own stream.
///
/// Studentised limits of a ratio work on the logarithm.
///
/// # Errors
///
/// As [`bootstrap`], for either sample.
pub fn contrast_bootstrap(
    samples: [SampleOf<'_>; 2],
    contrast: Contrast,
    question: &Question,
    plan: &Plan,
) -> Result<Bootstrapped, StatsError> {
    let [first, second] = samples;
    let mut sides = Vec::with_capacity(2);
    for (sample, cell) in [(first, plan.cell), (second, plan.cell ^ SECOND)] {
        let design = Design::new(sample.values, sample.scheme)?;
        let plan = Plan { cell, ..*plan };
        sides.push(Replicates::new(&design, question.statistic, question.jackknife(), &plan)?);
    }
    let [a, b] = [&sides[0], &sides[1]];
    let error = contrast.error((a.estimate, a.error), (b.estimate, b.error));
    let values = a.values.iter().zip(&b.values).map(|(x, y)| contrast.of(*x, *y)).collect();
    let errors = if a.errors.is_empty() || b.errors.is_empty() {
        Vec::new()
    } else {
        let x = a.values.iter().copied().zip(a.errors.iter().copied());
        let y = b.values.iter().copied().zip(b.errors.iter().copied());
        x.zip(y).map(|(x, y)| contrast.error(x, y)).collect()
    };
    let mut left_out: Vec<Vec<f64>> = Vec::new();
    left_out.extend(a.left_out.iter().map(|s| s.iter().map(|x| contrast.of(*x, b.estimate)).collect()));
    left_out.extend(b.left_out.iter().map(|s| s.iter().map(|y| contrast.of(a.estimate, *y)).collect()));
    let estimate = contrast.of(a.estimate, b.estimate);
    let scale = contrast.scale();
    Ok(Pairs { estimate, error, values, errors, left_out, scale }.intervals(question, plan.tails()))
}

impl Question {
    fn jackknife(&self) -> Jackknife {
        if self.bca { Jackknife::Wanted } else { Jackknife::Unwanted }
    }
}

impl Contrast {
    fn of(self, first: f64, second: f64) -> f64 {
        match self {
            Self::Difference => second - first,
            Self::Ratio => second / first,
        }
    }

    fn scale(self) -> Scale {
        match self {
            Self::Difference => Scale::Plain,
            Self::Ratio => Scale::Logarithm,
        }
    }

    /// Standard error of the contrast of two independent (value, error) pairs, by the delta method for the ratio.
    fn error(self, first: (f64, f64), second: (f64, f64)) -> f64 {
        match self {
            Self::Difference => first.1.hypot(second.1),
            Self::Ratio => (second.0 / first.0).abs() * (first.1 / first.0).hypot(second.1 / second.0),
        }
    }
}

/// On which scale a statistic is studentised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Plain,
    Logarithm,
}

/// Replicates of the final quantity.
struct Pairs {
    estimate: f64,
    error: f64,
    values: Vec<f64>,
    errors: Vec<f64>,
    left_out: Vec<Vec<f64>>,
    scale: Scale,
}

impl Pairs {
    fn intervals(mut self, question: &Question, tails: (f64, f64)) -> Bootstrapped {
        let studentised = self.studentised(tails);
        let before = self.values.len();
        self.values.retain(|value| !value.is_nan());
        let undefined = before - self.values.len();
        let middle = percentile(&mut self.values, tails);
        let corrected = if question.bca && !self.values.is_empty() {
            bca(&mut self.values, self.estimate, acceleration(&self.left_out), tails)
        } else {
            (f64::NAN, f64::NAN)
        };
        let intervals = Intervals {
            estimate: self.estimate,
            percentile: middle,
            basic: mirrored(self.estimate, middle),
            bca: corrected,
            studentised,
        };
        Bootstrapped { intervals, undefined }
    }

    /// Bootstrap-t. Source: A. C. Davison, D. V. Hinkley, 1997, eq. 5.7; on the logarithm as in section 5.2.2.
    ///
    /// Not numbers where the logarithm of the estimate is none.
    fn studentised(&self, tails: (f64, f64)) -> Interval {
        let (estimate, error) = (self.estimate, self.error);
        if self.scale == Scale::Logarithm && estimate <= 0.0 {
            return (f64::NAN, f64::NAN);
        }
        let pairs = self.values.iter().zip(&self.errors);
        let mut t: Vec<f64> = match self.scale {
            Scale::Plain => pairs.map(|(value, spread)| (value - estimate) / spread).collect(),
            Scale::Logarithm => {
                pairs.map(|(value, spread)| libm::log(value / estimate) / (spread / value).abs()).collect()
            }
        };
        t.retain(|value| !value.is_nan());
        let (low, high) = percentile(&mut t, tails);
        match self.scale {
            Scale::Plain => (estimate - high * error, estimate - low * error),
            Scale::Logarithm => {
                let relative = error / estimate.abs();
                (estimate * libm::exp(-high * relative), estimate * libm::exp(-low * relative))
            }
        }
    }
}

/// Acceleration from leave-one-out values by stratum (or sample).
///
/// Source: A. C. Davison, D. V. Hinkley, 1997, eq. 5.26 with jackknife influences, as for several samples.
fn acceleration(left_out: &[Vec<f64>]) -> f64 {
    let (mut cubes, mut squares) = (0.0, 0.0);
    for values in left_out {
        let count = real(values.len());
        let centre = crate::sum::mean(values);
        for value in values {
            let influence = (count - 1.0) * (centre - value) / count;
            squares += influence * influence;
            cubes += influence * influence * influence;
        }
    }
    if squares > 0.0 { cubes / (6.0 * squares * squares.sqrt()) } else { 0.0 }
}

#[cfg(test)]
mod tests;
