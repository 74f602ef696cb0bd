//! Evidence that a history of results has changed its level, and where, and by how much.
//!
//! The model of the logarithm of a result's mean has two sources of noise: results differ from each other, each depending on
//! the one before (first-order autoregression), and a mean has the error of its runs, which do not depend on each other:
//!
//! y = level + between + within,  var y = s^2 (w A(rho) + (1 - w) D),
//!
//! A(rho) the autoregressive correlations, D what the numbers of runs make of a mean's error, w the share of the variance
//! between results. The spread of the runs inside results is part of the likelihood, so it says how large w can be.
//! Location and scale are integrated out by their invariant prior. The evidence is the likelihood of a change, averaged over its
//! place, its size, rho and w, over the likelihood of no change at the rho and w that suit it best. For each of these
//! the ratio without the best is a test martingale, so that the evidence cannot be raised by looking again.
//!
//! Sources: Kass and Raftery 1995 (likelihood averaged over parameters); Berger, Pericchi and Varshavsky 1998 (the invariant
//! prior makes it exact); Harville 1977 (restricted likelihood of variance components). Deviation: the weights of places and sizes.

mod covariance;
mod effect;
mod outlier;
mod results;
mod scale;

use rayon::prelude::*;

use crate::error::StatsError;
use crate::sample::real;
use covariance::{Fit, fits};
pub use effect::Effect;
use effect::{Term, effect};
use outlier::pull_in;
pub use results::Results;
use results::{FEWEST, SHORTEST};

/// Weight of all places alike; the rest goes to those in the middle, where a small change can be seen.
const EVEN_SHARE: f64 = 0.05;

/// Power of the product of both sides' lengths that the rest is weighted by.
const MIDDLE_POWER: f64 = 12.0;

/// Logarithm of the evidence below which nothing is called a change, whatever the noise does.
const NEGLIGIBLE: f64 = -2.0;

/// What is known of a change of level.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelChange {
    /// Logarithm of the evidence; negative infinity where results depend on each other more than is allowed for, or are all
    /// the same.
    pub evidence: f64,
    /// First result of the new level: the most likely place.
    pub position: usize,
    /// First and last place of the shortest range around it that holds the change with 95 %.
    pub places: (usize, usize),
    /// Size of the change, as difference of logarithms, over all its places.
    pub effect: Effect,
    /// Autocorrelation between results that suits best, a change taken into account.
    pub autocorrelation: f64,
    /// Share of the variance that lies between results, likewise.
    pub between: f64,
    /// Standard deviation of a result's value, likewise.
    pub noise: f64,
}

/// Finds the change of level that a history gives most evidence for.
///
/// `largest` is the largest autocorrelation between results that is allowed for; from 0.7 on, a history that a larger one suits
/// better gives no evidence. Isolated outliers are pulled in before, so that
/// fewer than three results make no level.
///
/// # Errors
///
/// If there are fewer than 6 results, one value is not finite, a result has no run, or `largest` lies outside [0, 1).
pub fn level_change(results: Results<'_>, largest: f64) -> Result<LevelChange, StatsError> {
    results.check(largest)?;
    let values = pull_in(results.values);
    let scan = Scan::new(Results { values: &values, ..results }, largest);
    Ok(scan.change(SHORTEST..=values.len() - SHORTEST))
}

/// Gives the evidence of each look at a growing history, from `first` results on; negative infinity for speed-ups.
///
/// With `is_downward` it is that of speed-ups instead.
///
/// # Errors
///
/// As for `level_change`, and if `first` is below 6.
pub fn level_looks(
    results: Results<'_>,
    largest: f64,
    first: usize,
    is_downward: bool,
) -> Result<Vec<f64>, StatsError> {
    results.check(largest)?;
    if first < FEWEST {
        return Err(StatsError::TooFew { needed: FEWEST, found: first });
    }
    let looks: Vec<usize> = (first..=results.values.len()).collect();
    Ok(looks
        .into_par_iter()
        .map(|count| {
            let part = results.first(count);
            let values = pull_in(part.values);
            let scan = Scan::new(Results { values: &values, ..part }, largest);
            let (evidence, change) = scan.evidence(SHORTEST..=count - SHORTEST);
            if (change < 0.0) == is_downward { evidence } else { f64::NEG_INFINITY }
        })
        .collect())
}

/// Gives the change that only the newest one or two results would show, were they a level.
///
/// # Errors
///
/// As for `level_change`.
pub fn newest_change(results: Results<'_>, largest: f64) -> Result<LevelChange, StatsError> {
    results.check(largest)?;
    let count = results.values.len();
    // The older results may hold outliers; the newest two are what is asked about.
    let mut values = pull_in(&results.values[..count - 2]);
    values.extend_from_slice(&results.values[count - 2..]);
    Ok(Scan::new(Results { values: &values, ..results }, largest).change(count - 2..=count - 1))
}

/// A history under each autocorrelation and share of the variance between results.
struct Scan {
    fits: Vec<Fit>,
    values: Vec<f64>,
    largest: f64,
    count: usize,
    is_constant: bool,
}

impl Scan {
    fn new(results: Results<'_>, largest: f64) -> Self {
        #[expect(clippy::float_cmp, reason = "constant is exact")]
        let is_constant = results.values.windows(2).all(|pair| pair[0] == pair[1]);
        Self {
            fits: if is_constant { Vec::new() } else { fits(results, largest) },
            values: results.values.to_vec(),
            largest,
            count: results.values.len(),
            is_constant,
        }
    }

    /// Gives the evidence, and the size of the change that weighs most.
    fn evidence(&self, places: std::ops::RangeInclusive<usize>) -> (f64, f64) {
        if self.is_constant {
            return (f64::NEG_INFINITY, 0.0);
        }
        let weights = self.weights(&places);
        let (mut sum, mut largest, mut change) = (0.0, f64::NEG_INFINITY, 0.0);
        let mut wandering = f64::NEG_INFINITY;
        for fit in &self.fits {
            for (place, weight) in places.clone().zip(&weights) {
                let likelihood = fit.prior + fit.likelihood(place) + weight;
                if !fit.is_allowed {
                    wandering = wandering.max(likelihood);
                } else if likelihood > largest {
                    sum = sum * libm::exp(largest - likelihood) + 1.0;
                    (largest, change) = (likelihood, fit.effects[place]);
                } else {
                    sum += libm::exp(likelihood - largest);
                }
            }
        }
        if wandering > largest {
            return (f64::NEG_INFINITY, change);
        }
        let evidence = largest + libm::log(sum) - self.unchanged();
        if evidence < NEGLIGIBLE {
            return (evidence, change);
        }
        (evidence + scale::lost(&self.values, self.largest, &places, &weights), change)
    }

    fn change(&self, places: std::ops::RangeInclusive<usize>) -> LevelChange {
        let (begin, evidence) = (*places.start(), self.evidence(places.clone()).0);
        if self.is_constant {
            let effect = Effect { middle: 0.0, low: 0.0, high: 0.0 };
            let places = (begin, begin);
            return LevelChange {
                evidence,
                position: begin,
                places,
                effect,
                autocorrelation: 0.0,
                between: 0.0,
                noise: 0.0,
            };
        }
        let weights = self.weights(&places);
        let mut terms: Vec<Term<'_>> = self
            .fits
            .iter()
            .flat_map(|fit| {
                let weigh = |(place, weight): (usize, &f64)| Term {
                    fit,
                    place,
                    weight: fit.prior + fit.likelihood(place) + weight,
                };
                places.clone().zip(&weights).map(weigh).collect::<Vec<_>>()
            })
            .collect();
        let largest = terms.iter().map(|term| term.weight).fold(f64::NEG_INFINITY, f64::max);
        let mut shares = vec![0.0; weights.len()];
        for term in &mut terms {
            term.weight = libm::exp(term.weight - largest);
            shares[term.place - begin] += term.weight;
        }
        terms.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        let best = &terms[0];
        let (at, around) = place_range(&shares);
        LevelChange {
            evidence,
            position: begin + at,
            places: (begin + around.0, begin + around.1),
            effect: effect(&terms),
            autocorrelation: best.fit.autocorrelation,
            between: best.fit.between,
            noise: best.fit.noise(best.place),
        }
    }

    fn unchanged(&self) -> f64 {
        self.fits.iter().filter(|fit| fit.is_allowed).map(Fit::unchanged).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Logarithms of the weights of the places.
    fn weights(&self, places: &std::ops::RangeInclusive<usize>) -> Vec<f64> {
        let middle = real(self.count) / 2.0;
        let raised = |place: usize| {
            let product = real(place) * real(self.count - place) / (middle * middle);
            libm::exp(MIDDLE_POWER * libm::log(product))
        };
        let total: f64 = places.clone().map(raised).sum();
        let even = EVEN_SHARE / real(places.end() + 1 - places.start());
        places.clone().map(|place| libm::log(even + (1.0 - EVEN_SHARE) * raised(place) / total)).collect()
    }
}

/// Gives the likeliest place, and the shortest range that holds 95 % grown from it.
fn place_range(shares: &[f64]) -> (usize, (usize, usize)) {
    let total: f64 = shares.iter().sum();
    let best =
        (0..shares.len()).fold(0, |best, place| if shares[place] > shares[best] { place } else { best });
    let (mut low, mut high, mut held) = (best, best, shares[best]);
    while held < 0.95 * total && (low > 0 || high + 1 < shares.len()) {
        let below = if low > 0 { shares[low - 1] } else { -1.0 };
        let above = shares.get(high + 1).copied().unwrap_or(-1.0);
        if below >= above {
            low -= 1;
        } else {
            high += 1;
        }
        held += below.max(above);
    }
    (best, (low, high))
}

#[cfg(test)]
mod tests;
