//! Noise that grows or shrinks, as another cause of values that look like a new level.

use super::covariance::{Fit, Inverse};
use crate::sample::real;

/// Standard deviation on the noisier side of a place over the other one, and its weight: large ones are rarer.
const FACTORS: [(f64, f64); 4] =
    [(2.0, 8.0 / 15.0), (4.0, 4.0 / 15.0), (8.0, 2.0 / 15.0), (16.0, 1.0 / 15.0)];

/// Fewest results on each side of a place where the noise may change: three make a level, and a spread takes more to be seen.
const FEWEST: usize = 6;

/// Autocorrelations that are tried, as shares of the largest.
const SHARES: [f64; 3] = [0.0, 0.5, 1.0];

/// Probability before anything is known that the noise of a history changes.
const CHANGES: f64 = 0.02;

/// Logarithm of a share of the likelihood that does not count.
const NEGLIGIBLE: f64 = -15.0;

/// Places are tried at distances from either end that grow by this factor: nearer to an end fewer results tell.
const PLACE_STEP: f64 = 1.5;

/// Gives by how much noise that changes lowers the logarithm of the evidence for a change of level, 0 or less.
///
/// A change of the noise is averaged over its place and size, with a level that changes and with one that does not; for the
/// latter the autocorrelation is the one that suits it best, as in the evidence itself. What the runs inside say is left out.
pub(super) fn lost(
    values: &[f64],
    largest: f64,
    places: &std::ops::RangeInclusive<usize>,
    weights: &[f64],
) -> f64 {
    let count = values.len();
    let cuts = cuts(count);
    if cuts.is_empty() {
        return 0.0;
    }
    let prior = libm::log(CHANGES / (1.0 - CHANGES) / (2.0 * real(cuts.len())));
    let rhos = SHARES.map(|share| share * largest);
    let even = rhos.map(|rho| scaled(values, rho, count, 1.0));
    let uneven: Vec<Vec<Fit>> = rhos.iter().map(|&rho| uneven(values, rho, &cuts, prior)).collect();
    let even_unchanged = even.iter().map(Fit::unchanged).fold(f64::NEG_INFINITY, f64::max);
    let uneven_unchanged = uneven.iter().map(|fits| unchanged(fits)).fold(f64::NEG_INFINITY, f64::max);
    if uneven_unchanged <= even_unchanged {
        return 0.0;
    }
    let (mut even_sum, mut uneven_sum) = (Sum::new(), Sum::new());
    for fit in &even {
        add(&mut even_sum, fit, places, weights);
    }
    for fit in uneven.iter().flatten() {
        if fit.prior + fit.most(places) > even_sum.log().max(uneven_sum.log()) + NEGLIGIBLE {
            add(&mut uneven_sum, fit, places, weights);
        }
    }
    let gained = libm::log1p(libm::exp(uneven_sum.log() - even_sum.log()));
    (gained - (uneven_unchanged - even_unchanged)).min(0.0)
}

/// Fits noise that changes, each with its weight.
fn uneven(values: &[f64], rho: f64, cuts: &[usize], prior: f64) -> Vec<Fit> {
    let both = FACTORS.into_iter().flat_map(|(up, weight)| [(up, weight), (1.0 / up, weight)]);
    let options =
        cuts.iter().flat_map(|&cut| both.clone().map(move |(factor, weight)| (cut, factor, weight)));
    let fitted = options.map(|(cut, factor, weight)| {
        let mut fit = scaled(values, rho, cut, factor);
        fit.prior = prior + libm::log(weight);
        fit
    });
    fitted.collect()
}

fn unchanged(fits: &[Fit]) -> f64 {
    let mut sum = Sum::new();
    for fit in fits {
        sum.add(fit.prior + fit.unchanged());
    }
    sum.log()
}

fn add(sum: &mut Sum, fit: &Fit, places: &std::ops::RangeInclusive<usize>, weights: &[f64]) {
    for (place, weight) in places.clone().zip(weights) {
        sum.add(fit.prior + fit.likelihood(place) + weight);
    }
}

/// Logarithm of a sum of exponentials.
struct Sum {
    largest: f64,
    sum: f64,
}

impl Sum {
    const fn new() -> Self {
        Self { largest: f64::NEG_INFINITY, sum: 0.0 }
    }

    fn add(&mut self, value: f64) {
        if value > self.largest {
            self.sum = self.sum * libm::exp(self.largest - value) + 1.0;
            self.largest = value;
        } else {
            self.sum += libm::exp(value - self.largest);
        }
    }

    fn log(&self) -> f64 {
        self.largest + libm::log(self.sum)
    }
}

fn cuts(count: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut distance = FEWEST;
    while distance <= count / 2 {
        found.extend([distance, count - distance]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive length")]
        let next = (PLACE_STEP * real(distance)) as usize;
        distance = next.max(distance + 1);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Fits an autoregression whose noise is larger by a factor from a place on.
fn scaled(values: &[f64], rho: f64, cut: usize, factor: f64) -> Fit {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / real(count);
    let ones: Vec<f64> = (0..count).map(|place| if place < cut { 1.0 } else { 1.0 / factor }).collect();
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let data: Vec<f64> = centred.iter().zip(&ones).map(|(value, one)| value * one).collect();
    let free = 1.0 - rho * rho;
    let inner = |place: usize| if place == 0 || place + 1 == count { 1.0 } else { 1.0 + rho * rho };
    let times = |vector: &[f64], place: usize| {
        let before = if place > 0 { vector[place - 1] } else { 0.0 };
        let after = if place + 1 < count { vector[place + 1] } else { 0.0 };
        (inner(place) * vector[place] - rho * (before + after)) / free
    };
    let mut tails = vec![0.0; count];
    let mut tail = 0.0;
    for place in (1..count).rev() {
        let beside = if place + 1 < count { 2.0 * rho * ones[place] * ones[place + 1] } else { 0.0 };
        tail += (inner(place) * ones[place] * ones[place] - beside) / free;
        tails[place] = tail;
    }
    let inverse = Inverse {
        log_determinant: real(count - 1) * libm::log(free) + 2.0 * real(count - cut) * libm::log(factor),
        ones: (0..count).map(|place| ones[place] * times(&ones, place)).collect(),
        data: (0..count).map(|place| ones[place] * times(&data, place)).collect(),
        tails,
    };
    Fit::of(&centred, &inverse, rho)
}
