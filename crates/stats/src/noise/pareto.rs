//! The generalised Pareto law of the largest values.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::noise::fitness::{Simulation, distances, p_value};
use crate::sample::{check_values, real, sorted, whole};

/// Shares of a sample that may be its tail, the largest first.
const SHARES: [f64; 8] = [0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

/// Fewest and most values in a tail.
const FEWEST: usize = 50;
const MOST: usize = 20_000;

/// A tail is taken from the first threshold above which the law is not refuted at this level.
const LEVEL: f64 = 0.1;

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
/// Thresholds leave 20, 10, 5, 2, 1, ... per cent of the sample (50 to 20 000 values) above them; the lowest one above which the
/// Anderson-Darling test does not refute the law at 10 % is taken, the highest one, marked as not holding, where all do.
/// `None` if the sample is too short, or has too few distinct values in its tail.
///
/// Source: B. Bader, J. Yan, X. Zhang, "Automated threshold selection for extreme value analysis via ordered
/// goodness-of-fit tests", 2018. Own deviation: a few fixed shares, tested from the lowest threshold up.
///
/// # Errors
///
/// If a value is not finite.
pub fn pareto_tail(values: &[f64], plan: &Simulation) -> Result<Option<ParetoTail>, StatsError> {
    check_values(values, 1)?;
    let ascending = sorted(values);
    let mut last = None;
    for (number, share) in SHARES.iter().enumerate() {
        let wanted = whole(share * real(ascending.len()));
        if !(FEWEST..=MOST).contains(&wanted) {
            continue;
        }
        let Some(tail) = tail_above(&ascending, wanted, (plan, number as u64)) else { continue };
        if tail.holds {
            return Ok(Some(tail));
        }
        last = Some(tail);
    }
    Ok(last)
}

fn tail_above(ascending: &[f64], wanted: usize, (plan, cell): (&Simulation, u64)) -> Option<ParetoTail> {
    let threshold = ascending[ascending.len() - wanted - 1];
    let from = ascending.partition_point(|&value| value <= threshold);
    let excesses: Vec<f64> = ascending[from..].iter().map(|value| value - threshold).collect();
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
        // SOURCE: R. L. Smith 1987; regular for shapes above -1/2.
        errors: ((1.0 + shape) / count.sqrt(), scale * (2.0 * (1.0 + shape) / count).sqrt()),
        fitness: (0.0, 0.0),
        holds: false,
    };
    let observed = distances(&excesses, |y| tail.tails(y)).anderson;
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
    let (p, _) = p_value(observed, excesses.len(), (plan, cell), simulate, statistic);
    tail.fitness = (observed, p);
    tail.holds = p >= LEVEL;
    Some(tail)
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
