//! The generalised Pareto law of the largest values.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::noise::fitness::{Simulation, distances, p_value};
use crate::sample::{check_values, real, sorted, whole};

/// Fewest and most values in a tail, and the largest share of a sample that may be one.
const FEWEST: usize = 15;
const MOST: usize = 20_000;
const LARGEST: usize = 5;

/// A tail is `GROWTH` times as long as the one before; so many in a row that are refuted end the search.
const GROWTH: f64 = 1.15;
const REFUTED: usize = 4;

/// Anderson-Darling statistics that one of twenty samples of the law exceeds once it was fitted to them, by shape.
///
/// Source: own simulation, 1500 samples of 100 values each; they hardly depend on the number (as in V. Choulakian, M. A.
/// Stephens, "Goodness-of-fit tests for the generalized Pareto distribution", Technometrics 43, 2001).
const LIMITS: [(f64, f64); 8] = [
    (-0.5, 1.15),
    (-0.4, 1.11),
    (-0.2, 1.04),
    (0.0, 0.98),
    (0.2, 0.93),
    (0.5, 0.84),
    (0.9, 0.79),
    (1.5, 0.73),
];

/// More values have limits of the shape that are symmetrical for every purpose.
const MANY: usize = 1000;

/// Twice the drop of the log-likelihood at the limits of an interval of 90 %.
///
/// Source: the 90 % quantile of chi-squared with one degree of freedom.
const DROP: f64 = 2.705_543_454_095_415;

/// Exponents below have no regular maximum.
const LOWEST_SHAPE: f64 = -0.5;

/// The law of what lies above a threshold: P(X - threshold > y) = (1 + shape y / scale)^(-1 / shape).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParetoTail {
    /// Largest value that does not belong to the tail.
    pub threshold: f64,
    /// Values above it.
    pub exceedances: usize,
    /// Exponent: above 0 heavier than exponential, from 1/2 on of infinite variance, from 1 on of infinite mean.
    pub shape: f64,
    /// In the unit of the values.
    pub scale: f64,
    /// Limits of the shape at 90 %, so that the lower one alone is surely below at 95 %.
    pub shape_limits: (f64, f64),
    /// Standard errors of shape and scale.
    pub errors: (f64, f64),
    /// Anderson-Darling statistic and its p-value by parametric bootstrap.
    pub fitness: (f64, f64),
    /// Whether the law is not refuted.
    pub holds: bool,
}

impl ParetoTail {
    /// Probabilities of an excess below and above `y`.
    fn tails(&self, y: f64) -> (f64, f64) {
        let risk = -log_survival(y, self.shape, self.scale);
        (-libm::expm1(-risk), libm::exp(-risk))
    }
}

fn log_survival(y: f64, shape: f64, scale: f64) -> f64 {
    if shape.abs() < 1e-9 {
        return -y / scale;
    }
    let inner = shape * y / scale;
    if inner <= -1.0 { f64::NEG_INFINITY } else { -libm::log1p(inner) / shape }
}

/// Looks for the threshold above which a sample follows a generalised Pareto law.
///
/// From 15 values up to a fifth of the sample (at most 20 000), each time 15 % more, the law is fitted to the largest values
/// and tested (Anderson-Darling, 5 %). The longest tail that is not refuted is taken, before four in a row that are: a tail
/// that reaches into the body of the sample, which has another law, is refuted from there on. `None` if the sample is too
/// short, or has too few distinct values in its tail; marked as not holding where no length holds.
///
/// Source: B. Bader, J. Yan, X. Zhang, "Automated threshold selection for extreme value analysis via ordered
/// goodness-of-fit tests", 2018. Own deviation: tested from the highest threshold down, so that a few values of a heavy tail
/// are found behind a light body.
///
/// # Errors
///
/// If a value is not finite.
pub fn pareto_tail(values: &[f64], plan: &Simulation) -> Result<Option<ParetoTail>, StatsError> {
    check_values(values, 1)?;
    let ascending = sorted(values);
    let most = (ascending.len() / LARGEST).min(MOST);
    let (mut length, mut refuted) = (FEWEST, 0);
    let (mut found, mut shortest) = (None, None);
    while length <= most && refuted < REFUTED {
        if let Some(tail) = tail_above(&ascending, length) {
            if tail.holds {
                (found, refuted) = (Some(tail), 0);
            } else {
                refuted += 1;
            }
            shortest = shortest.or(Some(tail));
        }
        length = whole((real(length) * GROWTH).ceil());
    }
    Ok(found.or(shortest).map(|tail| judged(tail, &ascending, plan)))
}

fn excesses_of(ascending: &[f64], threshold: f64) -> Vec<f64> {
    let from = ascending.partition_point(|&value| value <= threshold);
    ascending[from..].iter().map(|value| value - threshold).collect()
}

fn tail_above(ascending: &[f64], wanted: usize) -> Option<ParetoTail> {
    let threshold = ascending[ascending.len() - wanted - 1];
    let excesses = excesses_of(ascending, threshold);
    let mut distinct = excesses.clone();
    distinct.dedup();
    if excesses.len() < FEWEST || distinct.len() < excesses.len() / 2 {
        return None;
    }
    let (shape, scale) = fit_excesses(&excesses);
    let count = real(excesses.len());
    let mut tail = ParetoTail {
        threshold,
        exceedances: excesses.len(),
        shape,
        scale,
        shape_limits: (shape, shape),
        // SOURCE: R. L. Smith 1987; regular for shapes above -1/2.
        errors: ((1.0 + shape) / count.sqrt(), scale * (2.0 * (1.0 + shape) / count).sqrt()),
        fitness: (0.0, 0.0),
        holds: false,
    };
    tail.fitness.0 = distances(&excesses, |y| tail.tails(y)).anderson;
    tail.holds = tail.fitness.0 <= limit(shape);
    Some(tail)
}

/// The statistic that one of twenty samples exceeds, interpolated.
fn limit(shape: f64) -> f64 {
    let last = LIMITS.len() - 1;
    let right = LIMITS.iter().position(|&(known, _)| known >= shape).unwrap_or(last).max(1);
    let ((low, below), (high, above)) = (LIMITS[right - 1], LIMITS[right]);
    let part = ((shape - low) / (high - low)).clamp(0.0, 1.0);
    below + part * (above - below)
}

/// The tail with its p-value and the limits of its shape.
fn judged(mut tail: ParetoTail, ascending: &[f64], plan: &Simulation) -> ParetoTail {
    let excesses = excesses_of(ascending, tail.threshold);
    let (shape, scale) = (tail.shape, tail.scale);
    let simulate = |size: usize, uniform: &mut dyn FnMut() -> f64| {
        let excess = |risk: f64| {
            if shape.abs() < 1e-9 { scale * risk } else { scale * libm::expm1(shape * risk) / shape }
        };
        (0..size).map(|_| excess(-libm::log(uniform()))).collect()
    };
    let statistic = |sample: &[f64]| {
        let (shape, scale) = fit_excesses(sample);
        let fitted = ParetoTail { shape, scale, ..tail };
        distances(sample, |y| fitted.tails(y)).anderson
    };
    tail.fitness.1 = p_value(tail.fitness.0, excesses.len(), (plan, 0), simulate, statistic).0;
    tail.shape_limits = shape_limits(&excesses, &tail);
    tail
}

/// Limits of the shape at 90 %: where the likelihood, at the best scale for each shape, has dropped too far.
fn shape_limits(excesses: &[f64], tail: &ParetoTail) -> (f64, f64) {
    let reach = DROP.sqrt() * tail.errors.0;
    if excesses.len() > MANY {
        return (tail.shape - reach, tail.shape + reach);
    }
    let count = real(excesses.len());
    let best = best_likelihood(excesses, tail.shape);
    let edge = |direction: f64| {
        let (mut inside, mut outside) = (tail.shape, tail.shape + direction * (3.0 * reach + 0.1));
        for _ in 0..40 {
            let middle = 0.5 * (inside + outside);
            if 2.0 * count * (best - best_likelihood(excesses, middle)) < DROP {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        0.5 * (inside + outside)
    };
    (edge(-1.0), edge(1.0))
}

/// Log-likelihood over the count at the best scale for a shape.
fn best_likelihood(excesses: &[f64], shape: f64) -> f64 {
    let count = real(excesses.len());
    let mean = excesses.iter().sum::<f64>() / count;
    if shape.abs() < 1e-6 {
        return -libm::log(mean) - 1.0;
    }
    let most = excesses[excesses.len() - 1];
    let value = |log_scale: f64| {
        let scale = libm::exp(log_scale);
        if shape * most / scale <= -1.0 {
            return f64::NEG_INFINITY;
        }
        -log_scale - (1.0 + 1.0 / shape) * mean_log(excesses, shape / scale)
    };
    // For a shape below 0 no excess is larger than -scale / shape.
    let lowest = if shape < 0.0 { libm::log(-shape * most) + 1e-9 } else { libm::log(mean) - 12.0 };
    value(golden(value, (lowest, lowest.max(libm::log(mean)) + 4.0)))
}

/// Maximum likelihood of shape and scale for ascending positive excesses: one unknown, theta = shape / scale, because the
/// best shape for it is the mean of ln(1 + theta y).
///
/// Source: S. D. Grimshaw, Technometrics 35, 1993. The grid that brackets the maximum is that of J. Zhang and M. A.
/// Stephens, Technometrics 51, 2009.
fn fit_excesses(excesses: &[f64]) -> (f64, f64) {
    let count = excesses.len();
    let (quarter, most) = (excesses[count / 4], excesses[count - 1]);
    let points = 20 + whole(real(count).sqrt());
    let grid = |step: f64| -1.0 / most - (1.0 - (real(points) / step).sqrt()) / (3.0 * quarter);
    let place = |step: f64| profile(excesses, grid(step));
    let best = (1..=points)
        .map(|step| real(step) - 0.5)
        .max_by(|a, b| place(*a).total_cmp(&place(*b)))
        .unwrap_or(0.5);
    let theta = grid(golden(place, ((best - 1.0).max(1e-6), best + 1.0)));
    let shape = mean_log(excesses, theta);
    if shape.abs() < 1e-9 {
        return (0.0, excesses.iter().sum::<f64>() / real(count));
    }
    (shape, shape / theta)
}

fn mean_log(excesses: &[f64], theta: f64) -> f64 {
    const PART: usize = 1 << 12;
    let parts: Vec<f64> = excesses
        .par_chunks(PART)
        .map(|part| part.iter().map(|y| libm::log1p((theta * y).max(-1.0 + 1e-15))).sum())
        .collect();
    parts.iter().sum::<f64>() / real(excesses.len())
}

/// Log-likelihood over the count, up to a constant; minus infinity outside the regular region.
fn profile(excesses: &[f64], theta: f64) -> f64 {
    let most = excesses[excesses.len() - 1];
    if theta * most <= -1.0 {
        return f64::NEG_INFINITY;
    }
    let shape = mean_log(excesses, theta);
    if shape < LOWEST_SHAPE {
        return f64::NEG_INFINITY;
    }
    if theta.abs() * most < 1e-9 {
        let mean = excesses.iter().sum::<f64>() / real(excesses.len());
        return -libm::log(mean) - 1.0;
    }
    libm::log(theta / shape) - shape - 1.0
}

/// Golden-section search of a maximum.
fn golden(mut value: impl FnMut(f64) -> f64, (mut low, mut high): (f64, f64)) -> f64 {
    // SOURCE: J. Kiefer 1953; (sqrt 5 - 1) / 2.
    const RATIO: f64 = 0.618_033_988_749_894_8;
    let (mut left, mut right) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_left, mut at_right) = (value(left), value(right));
    while high - low > 1e-8 {
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - RATIO * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + RATIO * (high - low);
            at_right = value(right);
        }
    }
    0.5 * (low + high)
}
