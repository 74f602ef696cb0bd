//! The likelihood of a history under one autocorrelation and one share of the variance between results.

use super::results::Results;
use crate::sample::real;

/// Standard deviations of the size of a change before it is known, in units of the noise, and their weights.
pub(super) const SIZES: [(f64, f64); 3] = [(2.5, 0.8), (25.0, 0.15), (250.0, 0.05)];

/// Step of the autocorrelations.
const RHO_STEP: f64 = 0.1;

/// Autocorrelations of histories that wander: their levels need no cause.
const WANDERING: [f64; 3] = [0.8, 0.9, 0.95];
const NEARLY_WANDERING: f64 = 0.7;

/// Ratio of squared differences at lags 2 and 1 above which a history may wander: 1 + rho, and about 1 with many levels.
const SMOOTH: f64 = 1.6;
const FEWEST_SMOOTH: usize = 40;

/// Largest differences that are left out of it: those of changes of level.
const TRIMMED_SHARE: f64 = 0.05;

/// Variance between results over that of a mean's error, beside 0; above the largest the runs say nothing.
/// Weight of noise that the runs explain whole.
const EXPLAINED: f64 = 0.5;
const RATIOS: [f64; 12] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 128.0, 512.0, 2048.0];

/// Smallest sum of squares: an exact step leaves none.
const TINY: f64 = 1e-300;

/// One autocorrelation and share between results, with what is needed of each place.
pub(super) struct Fit {
    pub(super) autocorrelation: f64,
    pub(super) between: f64,
    /// Whether it is allowed for; else the history wanders.
    pub(super) is_allowed: bool,
    /// Logarithm of its weight where a change goes with it.
    pub(super) prior: f64,
    /// What does not depend on a change.
    base: f64,
    residual: f64,
    freedom: f64,
    /// Products of the residuals and a step at each place, and the information about its size.
    pub(super) effects: Vec<f64>,
    pub(super) information: Vec<f64>,
}

impl Fit {
    /// Fits results by the inverse of their correlations; what the runs inside say is left out.
    pub(super) fn of(values: &[f64], inverse: &Inverse, autocorrelation: f64) -> Self {
        let count = values.len();
        let information = inverse.ones.iter().sum::<f64>();
        let level = inverse.data.iter().sum::<f64>() / information;
        let (mut effects, mut details) = (vec![0.0; count], vec![0.0; count]);
        let (mut effect, mut shared) = (0.0, 0.0);
        for place in (1..count).rev() {
            effect += inverse.data[place] - level * inverse.ones[place];
            shared += inverse.ones[place];
            effects[place] = effect;
            details[place] = inverse.tails[place] - shared * shared / information;
        }
        let squares = values.iter().zip(&inverse.data).map(|(value, weighted)| value * weighted).sum::<f64>();
        Self {
            autocorrelation,
            between: 1.0,
            is_allowed: true,
            prior: 0.0,
            base: -0.5 * (inverse.log_determinant + libm::log(information)),
            residual: (squares - level * level * information).max(TINY),
            freedom: real(count - 1),
            effects,
            information: details,
        }
    }

    pub(super) fn unchanged(&self) -> f64 {
        self.base - 0.5 * self.freedom * libm::log(self.residual)
    }

    /// Log-likelihood of a change at a place, averaged over its size.
    pub(super) fn likelihood(&self, place: usize) -> f64 {
        let (effect, information) = (self.effects[place], self.information[place]);
        let parts = SIZES.map(|(size, weight)| {
            let wide = size * size;
            let left = (self.residual - effect * effect / (information + 1.0 / wide)).max(TINY);
            let power = -0.5 * self.freedom * libm::log(left);
            (power, weight / (1.0 + wide * information).sqrt())
        });
        let largest = parts.iter().map(|part| part.0).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = parts.iter().map(|(power, weight)| weight * libm::exp(power - largest)).sum();
        self.base + largest + libm::log(total)
    }

    /// What no log-likelihood of a change exceeds.
    pub(super) fn most(&self, places: &std::ops::RangeInclusive<usize>) -> f64 {
        let explained = places
            .clone()
            .map(|place| self.effects[place] * self.effects[place] / self.information[place])
            .fold(0.0, f64::max);
        self.base - 0.5 * self.freedom * libm::log((self.residual - explained).max(TINY))
    }

    /// Size, its standard error, and the degrees of freedom of that.
    pub(super) fn size(&self, place: usize) -> (f64, f64, f64) {
        let (effect, information) = (self.effects[place], self.information[place]);
        let freedom = self.freedom - 1.0;
        let left = (self.residual - effect * effect / information).max(TINY);
        (effect / information, (left / freedom / information).sqrt(), freedom)
    }

    pub(super) fn noise(&self, place: usize) -> f64 {
        let (effect, information) = (self.effects[place], self.information[place]);
        ((self.residual - effect * effect / information).max(0.0) / (self.freedom - 1.0)).sqrt()
    }
}

/// Gives the autocorrelations that are allowed for.
pub(super) fn correlations(largest: f64) -> Vec<f64> {
    let mut found = Vec::new();
    let mut rho = 0.0;
    while rho < largest - 1e-9 {
        found.push(rho);
        rho += RHO_STEP;
    }
    found.push(largest);
    found
}

/// Gives the fits of a history that is not constant.
pub(super) fn fits(results: Results<'_>, largest: f64) -> Vec<Fit> {
    let count = results.values.len();
    let mean = results.values.iter().sum::<f64>() / real(count);
    let values: Vec<f64> = results.values.iter().map(|value| value - mean).collect();
    let within = Within::new(results);
    let mut correlations: Vec<(f64, bool)> =
        correlations(largest).into_iter().map(|rho| (rho, true)).collect();
    if largest >= NEARLY_WANDERING && count >= FEWEST_SMOOTH && smoothness(&values) > SMOOTH {
        correlations.extend(WANDERING.into_iter().filter(|&rho| rho > largest).map(|rho| (rho, false)));
    }
    let total = values.iter().map(|value| value * value).sum::<f64>();
    let Some(within) =
        within.filter(|within| total / real(count - 1) < RATIOS[RATIOS.len() - 1] * within.variance)
    else {
        let none = Within { shares: vec![0.0; count], sum: 0.0, freedom: 0.0, variance: 0.0 };
        let found = correlations.iter().map(|&(rho, allowed)| fit(&values, &none, rho, 1.0, allowed));
        return weighted(found.collect(), 1.0);
    };
    let mut found = Vec::new();
    for ratio in RATIOS {
        let between = ratio / (1.0 + ratio);
        found.extend(correlations.iter().map(|&(rho, allowed)| fit(&values, &within, rho, between, allowed)));
    }
    found = weighted(found, 1.0 - EXPLAINED);
    found.extend(weighted(vec![fit(&values, &within, 0.0, 0.0, true)], EXPLAINED));
    found
}

/// Gives the ratio of trimmed squared differences at lags 2 and 1, which forgets levels.
fn smoothness(values: &[f64]) -> f64 {
    let trimmed = |lag: usize| {
        let mut squares: Vec<f64> =
            values[lag..].iter().zip(values).map(|(later, earlier)| (later - earlier).powi(2)).collect();
        squares.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive share of a length"
        )]
        let left_out = lag * (TRIMMED_SHARE * real(values.len())).ceil() as usize;
        let kept = squares.len().saturating_sub(left_out).max(1);
        squares[..kept].iter().sum::<f64>() / real(kept)
    };
    trimmed(2) / trimmed(1).max(TINY)
}

/// Shares a weight among fits.
fn weighted(mut fits: Vec<Fit>, weight: f64) -> Vec<Fit> {
    let allowed = fits.iter().filter(|fit| fit.is_allowed).count();
    for fit in &mut fits {
        fit.prior = libm::log(weight / real(allowed));
    }
    fits
}

/// What the runs inside the results say of the error of their means.
struct Within {
    /// Variance of each mean's error over the average of these variances.
    shares: Vec<f64>,
    /// Squared deviations of the runs, in units of a mean's error.
    sum: f64,
    freedom: f64,
    /// Average variance of a mean's error.
    variance: f64,
}

impl Within {
    fn new(results: Results<'_>) -> Option<Self> {
        let freedom = results.runs.iter().map(|runs| runs - 1.0).sum::<f64>();
        let squares = results.squares.iter().sum::<f64>();
        let average = results.runs.iter().map(|runs| 1.0 / runs).sum::<f64>() / real(results.runs.len());
        let shares = results.runs.iter().map(|runs| 1.0 / runs / average).collect();
        let sum = squares * average;
        (freedom >= 1.0 && sum > 0.0).then(|| Self { shares, sum, freedom, variance: sum / freedom })
    }
}

/// Fits a history of mean 0.
fn fit(values: &[f64], within: &Within, rho: f64, between: f64, is_allowed: bool) -> Fit {
    let inverse = if between >= 1.0 {
        Inverse::autoregressive(values, rho)
    } else if between <= 0.0 {
        Inverse::independent(values, &within.shares)
    } else {
        Inverse::mixed(values, &within.shares, rho, between)
    };
    let mut fit = Fit { between, is_allowed, ..Fit::of(values, &inverse, rho) };
    fit.freedom += within.freedom;
    if between < 1.0 {
        fit.base -= 0.5 * within.freedom * libm::log1p(-between);
        fit.residual += within.sum / (1.0 - between);
    }
    fit
}

/// Products with the inverse of the correlations.
pub(super) struct Inverse {
    pub(super) log_determinant: f64,
    pub(super) ones: Vec<f64>,
    pub(super) data: Vec<f64>,
    /// Of a step at each place with itself.
    pub(super) tails: Vec<f64>,
}

impl Inverse {
    fn independent(values: &[f64], shares: &[f64]) -> Self {
        let ones: Vec<f64> = shares.iter().map(|share| 1.0 / share).collect();
        let mut tails = ones.clone();
        for place in (0..tails.len() - 1).rev() {
            tails[place] += tails[place + 1];
        }
        Self {
            log_determinant: shares.iter().map(|&share| libm::log(share)).sum(),
            data: values.iter().zip(&ones).map(|(value, weight)| value * weight).collect(),
            ones,
            tails,
        }
    }

    fn autoregressive(values: &[f64], rho: f64) -> Self {
        let count = values.len();
        let free = 1.0 - rho * rho;
        let times = |at: &dyn Fn(usize) -> f64, place: usize| {
            let inner = if place == 0 || place + 1 == count { 1.0 } else { 1.0 + rho * rho };
            let before = if place > 0 { at(place - 1) } else { 0.0 };
            let after = if place + 1 < count { at(place + 1) } else { 0.0 };
            (inner * at(place) - rho * (before + after)) / free
        };
        let step = (1.0 - rho) * (1.0 - rho) / free;
        Self {
            log_determinant: real(count - 1) * libm::log(free),
            ones: (0..count).map(|place| times(&|_| 1.0, place)).collect(),
            data: (0..count).map(|place| times(&|at| values[at], place)).collect(),
            tails: (0..count).map(|place| 1.0 / free + real(count - 1 - place) * step).collect(),
        }
    }

    /// By the inverse of autoregression, which has three diagonals: (P + W)^-1 = W^-1 - W^-1 (P^-1 + W^-1)^-1 W^-1.
    fn mixed(values: &[f64], shares: &[f64], rho: f64, between: f64) -> Self {
        let count = values.len();
        let free = between * (1.0 - rho * rho);
        let weights: Vec<f64> = shares.iter().map(|share| 1.0 / ((1.0 - between) * share)).collect();
        let beside = -rho / free;
        let (mut pivots, mut factors) = (vec![0.0; count], vec![0.0; count]);
        for place in 0..count {
            let inner = if place == 0 || place + 1 == count { 1.0 } else { 1.0 + rho * rho };
            let diagonal = inner / free + weights[place];
            if place > 0 {
                factors[place] = beside / pivots[place - 1];
            }
            pivots[place] = diagonal - factors[place] * if place > 0 { beside } else { 0.0 };
        }
        let forward = |source: &dyn Fn(usize) -> f64| {
            let mut found = vec![0.0; count];
            for place in 0..count {
                let before = if place > 0 { found[place - 1] } else { 0.0 };
                found[place] = source(place) - factors[place] * before;
            }
            found
        };
        let solve = |source: &dyn Fn(usize) -> f64| {
            let mut found = forward(source);
            let mut after = 0.0;
            for place in (0..count).rev() {
                let factor = if place + 1 < count { factors[place + 1] } else { 0.0 };
                after = found[place] / pivots[place] - factor * after;
                found[place] = after;
            }
            found
        };
        let apply = |at: &dyn Fn(usize) -> f64| {
            let smooth = solve(&|place| weights[place] * at(place));
            (0..count).map(|place| weights[place] * (at(place) - smooth[place])).collect::<Vec<f64>>()
        };
        // A step that begins at a place starts the forward elimination there.
        let started = forward(&|place| weights[place]);
        let mut tails = vec![0.0; count];
        let (mut weight, mut whole, mut crossed, mut reached) = (0.0, 0.0, 0.0, 0.0);
        for place in (0..count).rev() {
            weight += weights[place];
            whole += started[place] * started[place] / pivots[place];
            crossed = -factors[place] * (started[place] / pivots[place] + crossed);
            reached = factors[place] * factors[place] * (1.0 / pivots[place] + reached);
            let before = if place > 0 { started[place - 1] } else { 0.0 };
            tails[place] = weight - (whole - 2.0 * before * crossed + before * before * reached);
        }
        let rest = real(count - 1) * libm::log(1.0 - rho * rho) + real(count) * libm::log(between);
        let determinant =
            pivots.iter().zip(&weights).map(|(pivot, weight)| libm::log(pivot / weight)).sum::<f64>();
        Self {
            log_determinant: determinant + rest,
            ones: apply(&|_| 1.0),
            data: apply(&|place| values[place]),
            tails,
        }
    }
}
