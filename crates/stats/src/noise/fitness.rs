//! How well a law describes a sample: distances of distribution functions, and their law under the hypothesis.

use rayon::prelude::*;

use crate::sample::real;
use crate::stream::{open_uniform, stream};

/// Values of one part of a sum, so that it does not depend on threads.
const PART: usize = 1 << 14;

/// Size of simulated samples at most. The law of the statistic hardly depends on the size beyond a few dozen values.
///
/// Source: M. A. Stephens in D'Agostino and Stephens, "Goodness-of-Fit Techniques", 1986, chapter 4.
const SIMULATED: usize = 500;

/// Distances between a sample and a law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Distances {
    pub(super) anderson: f64,
    pub(super) kolmogorov: f64,
}

/// Measures an ascending sample against a law given by its tails.
///
/// Source: T. W. Anderson, D. A. Darling, "A Test of Goodness of Fit", 1954 (A squared).
pub(super) fn distances(sorted: &[f64], tails: impl Fn(f64) -> (f64, f64) + Sync) -> Distances {
    let count = real(sorted.len());
    let parts: Vec<(f64, f64)> = sorted
        .par_chunks(PART)
        .enumerate()
        .map(|(part, values)| {
            let (mut sum, mut farthest) = (0.0, 0.0_f64);
            for (offset, &value) in values.iter().enumerate() {
                let rank = real(part * PART + offset);
                let (below, above) = tails(value);
                let (low, high) = (below.max(f64::MIN_POSITIVE), above.max(f64::MIN_POSITIVE));
                sum += (2.0 * rank + 1.0) * libm::log(low) + (2.0 * (count - rank) - 1.0) * libm::log(high);
                farthest = farthest.max(below - rank / count).max((rank + 1.0) / count - below);
            }
            (sum, farthest)
        })
        .collect();
    let sum: f64 = parts.iter().map(|part| part.0).sum();
    let kolmogorov = parts.iter().fold(0.0_f64, |most, part| most.max(part.1));
    Distances { anderson: -count - sum / count, kolmogorov }
}

/// Sum of log densities in an order that does not depend on threads.
pub(super) fn log_likelihood(sorted: &[f64], log_density: impl Fn(f64) -> f64 + Sync) -> f64 {
    let parts: Vec<f64> =
        sorted.par_chunks(PART).map(|values| values.iter().map(|&value| log_density(value)).sum()).collect();
    parts.iter().sum()
}

/// How many samples are simulated, and from which stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulation {
    /// Samples at most, at least 1.
    pub samples: usize,
    /// So many statistics as large as the observed one settle the matter.
    pub enough: usize,
    /// Seed.
    pub seed: u64,
}

/// The probability of a statistic at least as large if the law holds, by parametric bootstrap: samples are drawn from the
/// fitted law and fitted as the data were. Gives it with the number of samples drawn.
///
/// Source: W. Stute, W. Gonzáles Manteiga, M. Presedo Quindimil, "Bootstrap based goodness-of-fit-tests", Metrika 40, 1993.
/// The simulation ends as soon as the answer is clear (J. Besag, P. Clifford, "Sequential Monte Carlo p-values", 1991).
pub(super) fn p_value(
    observed: f64,
    count: usize,
    (plan, cell): (&Simulation, u64),
    simulate: impl Fn(usize, &mut dyn FnMut() -> f64) -> Vec<f64> + Sync,
    statistic: impl Fn(&[f64]) -> f64 + Sync,
) -> (f64, usize) {
    const BATCH: usize = 20;
    let size = count.min(SIMULATED);
    let mut reached = 0;
    let mut first = 0;
    while first < plan.samples {
        let batch: Vec<f64> = (first..(first + BATCH).min(plan.samples))
            .into_par_iter()
            .map(|number| {
                let mut generator = stream(plan.seed, cell, number);
                let mut uniform = || open_uniform(&mut generator);
                let mut sample = simulate(size, &mut uniform);
                sample.sort_unstable_by(f64::total_cmp);
                statistic(&sample)
            })
            .collect();
        for (offset, simulated) in batch.iter().enumerate() {
            // A sample that cannot be fitted counts for the law.
            reached += usize::from(*simulated >= observed || simulated.is_nan());
            if reached >= plan.enough {
                let drawn = first + offset + 1;
                return (real(reached) / real(drawn), drawn);
            }
        }
        first += BATCH;
    }
    (real(reached + 1) / real(plan.samples + 1), plan.samples)
}
