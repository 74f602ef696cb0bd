//! Laws of noise: which one a sample of residuals follows, if any.
//!
//! Shifted laws are fitted by the maximum product of spacings, because their likelihood has no maximum; the normal law by
//! maximum likelihood. Whether a law fits is decided by the Anderson-Darling statistic against samples that are drawn from
//! the fitted law and fitted again, because tables for known parameters would accept too much.

use crate::error::StatsError;
use crate::sample::{check_values, real, sorted};

mod cells;
mod curve;
mod fit;
mod fitness;
mod gamma;
mod law;
mod pareto;

pub use curve::CurveError;
pub use fitness::Simulation;
pub use law::{Law, LawKind};
pub use pareto::{ParetoTail, pareto_tail};

use cells::{Cells, distinct_count};
use fit::{Bounds, climb, errors, fit, law_at, place_of};
use fitness::{distances, log_likelihood, p_value};

/// Fewest values of a fit.
const FEWEST: usize = 10;

/// One law, fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawFit {
    /// The law.
    pub law: Law,
    /// Standard errors of the logarithms of (smallest value - shift), shape and scale; of a normal law: of its mean, not a
    /// number, and of the logarithm of its standard deviation. Not a number where a bound holds the shift.
    pub errors: [f64; 3],
    /// Smallest value of the sample.
    pub lowest: f64,
    /// Sum of log densities.
    pub log_likelihood: f64,
    /// Anderson-Darling statistic, and its p-value by parametric bootstrap.
    pub fitness: (f64, f64),
    /// Samples simulated for the p-value.
    pub simulated: usize,
    /// Largest distance between the distribution functions.
    pub distance: f64,
}

/// Laws fitted to one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseFit {
    /// Normal, lognormal, gamma, Weibull.
    pub laws: Vec<LawFit>,
    /// Values that differ by more than rounding.
    pub distinct: usize,
}

/// What is known about a sample beside its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NoiseSetting {
    /// The smallest value that a law may allow (0 for times), if any.
    pub lowest_shift: Option<f64>,
    /// The error of the curve that the values are deviations from; `None` where it is known.
    pub curve: Option<CurveError>,
}

/// Fits every law.
///
/// # Errors
///
/// If fewer than 10 values are given, one is not finite or not above the lowest shift, all are equal, the curve has another
/// length, or the plan is empty.
pub fn fit_noise(values: &[f64], setting: &NoiseSetting, plan: &Simulation) -> Result<NoiseFit, StatsError> {
    check_values(values, FEWEST)?;
    if let Some(curve) = &setting.curve {
        curve.check(values.len())?;
    }
    if plan.samples == 0 || plan.enough == 0 {
        return Err(StatsError::Zero { name: "simulated samples" });
    }
    if let Some(lowest) = setting.lowest_shift
        && let Some(index) = values.iter().position(|value| *value <= lowest)
    {
        return Err(StatsError::NotPositive { name: "values above the lowest shift", index });
    }
    let ascending = sorted(values);
    let distinct = distinct_count(&ascending);
    if distinct < 3 {
        return Err(StatsError::TooFew { needed: 3, found: distinct });
    }
    let mut laws = vec![fit_normal(&ascending, setting, plan)];
    laws.extend(
        [LawKind::Lognormal, LawKind::Gamma, LawKind::Weibull]
            .into_iter()
            .zip(1..)
            .map(|(kind, cell)| fit_shifted(kind, &ascending, setting, (plan, cell))),
    );
    Ok(NoiseFit { laws, distinct })
}

fn fit_shifted(
    kind: LawKind,
    ascending: &[f64],
    setting: &NoiseSetting,
    (plan, cell): (&Simulation, u64),
) -> LawFit {
    let lowest = setting.lowest_shift;
    let cells = Cells::of(ascending);
    let bounds = Bounds::of(&cells, lowest);
    let found = fit(kind, &cells, &bounds);
    let law = law_at(kind, &cells, &bounds, &found.place);
    let statistic = |sample: &[f64]| {
        let cells = Cells::of(sample);
        let bounds = Bounds::of(&cells, lowest);
        let again = climb(kind, &cells, &bounds, place_of(&law, &cells, &bounds));
        let fitted = law_at(kind, &cells, &bounds, &again.place);
        distances(sample, |value| fitted.tails(value)).anderson
    };
    let estimate = (law, errors(&found, &bounds));
    judged(estimate, ascending, setting, (plan, cell), statistic)
}

fn normal_law(sample: &[f64]) -> Law {
    let count = real(sample.len());
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Law { kind: LawKind::Normal, shift: mean, shape: 0.0, scale: variance.sqrt() }
}

fn fit_normal(ascending: &[f64], setting: &NoiseSetting, plan: &Simulation) -> LawFit {
    let law = normal_law(ascending);
    let count = real(ascending.len());
    let errors = [law.scale / count.sqrt(), f64::NAN, 1.0 / (2.0 * count).sqrt()];
    let statistic = |sample: &[f64]| {
        let fitted = normal_law(sample);
        distances(sample, |value| fitted.tails(value)).anderson
    };
    judged((law, errors), ascending, setting, (plan, 0), statistic)
}

fn judged(
    (law, errors): (Law, [f64; 3]),
    ascending: &[f64],
    setting: &NoiseSetting,
    plan: (&Simulation, u64),
    statistic: impl Fn(&[f64]) -> f64 + Sync,
) -> LawFit {
    let found = distances(ascending, |value| law.tails(value));
    let simulate = |size: usize, uniform: &mut dyn FnMut() -> f64| {
        let mut draw = || {
            let u = uniform();
            law.quantile(u, 1.0 - u)
        };
        let mut sample: Vec<f64> = (0..size).map(|_| draw()).collect();
        if let Some(curve) = &setting.curve {
            curve.apply(&mut sample);
        }
        sample
    };
    let (p, simulated) = p_value(found.anderson, ascending.len(), plan, simulate, statistic);
    LawFit {
        law,
        errors,
        lowest: ascending[0],
        log_likelihood: log_likelihood(ascending, |value| law.log_density(value)),
        fitness: (found.anderson, p),
        simulated,
        distance: found.kolmogorov,
    }
}

#[cfg(test)]
mod tests;
