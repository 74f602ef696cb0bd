//! The largest split of a series: how large it is, where, and how large it is by chance.
//!
//! Used to confirm the changes of a series of iterations (`steelyard.analyse.series.confirmed_changes`). Values are brought into units of their noise and cut off around the median, so that an outlier of any size weighs
//! little; the noise comes from differences of neighbours, which a few changes of level cannot inflate.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::sample::{check_values, real};
use crate::stream::stream;
use crate::ziggurat::Normal;

/// Fewest values of a segment: one value alone cannot be told from an outlier.
const SHORTEST: usize = 2;

/// Fewest values of a series.
const FEWEST: usize = 6;

/// Farthest that a value counts from the median, in standard deviations of the noise.
const CUT_OFF: f64 = 3.0;

/// Largest steps left out of the noise and of the roughness, which changes of level would inflate.
const TRIMMED_SHARE: f64 = 0.03;

/// Series that share one stream. A constant of the method: changing it changes every simulated number.
const SERIES_PER_STREAM: usize = 25;

/// What is measured of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Largest standardised difference of two sides, over all splits.
    pub size: f64,
    /// First value of the second side.
    pub position: usize,
    /// Ratio of trimmed squared differences at lags 2 and 1: 1 + rho without trimming. It forgets levels, however many.
    pub roughness: f64,
    /// Correlation of neighbours in what is left when both sides have lost their means.
    pub residual_correlation: f64,
    /// Standard deviation of the noise, from trimmed differences of neighbours.
    pub noise: f64,
}

/// Measures the largest split of a series, and how neighbours depend on each other.
///
/// # Errors
///
/// If there are fewer than 6 values or one is not finite.
pub fn measure_split(values: &[f64]) -> Result<Split, StatsError> {
    check_values(values, FEWEST)?;
    Ok(Measuring::new(values.len()).measure(values))
}

/// Measures Gaussian autoregressive series of first order without a change.
///
/// Gives `draws` measures for each autocorrelation of the grid; the same arguments give the same numbers with any number of
/// threads.
///
/// # Errors
///
/// If the length is below 6, or an autocorrelation lies outside [0, 1).
pub fn simulated_splits(
    length: usize,
    draws: usize,
    grid: &[f64],
    seed: u64,
) -> Result<Vec<Vec<Split>>, StatsError> {
    if length < FEWEST {
        return Err(StatsError::TooFew { needed: FEWEST, found: length });
    }
    if let Some(&value) = grid.iter().find(|value| !(0.0..1.0).contains(*value)) {
        return Err(StatsError::Share { value });
    }
    let streams = draws.div_ceil(SERIES_PER_STREAM);
    let parts: Vec<Vec<Split>> = (0..grid.len() * streams)
        .into_par_iter()
        .map(|task| {
            let (step, chunk) = (task / streams, task % streams);
            let rounds = SERIES_PER_STREAM.min(draws - chunk * SERIES_PER_STREAM);
            // The same autocorrelation gives the same series, whatever else is in the grid.
            let cell = grid[step].to_bits() ^ length as u64;
            let mut source = Normal::new(stream(seed, cell, chunk));
            let mut measuring = Measuring::new(length);
            let mut series = vec![0.0; length];
            (0..rounds)
                .map(|_| {
                    autoregress(&mut source, grid[step], &mut series);
                    measuring.measure(&series)
                })
                .collect()
        })
        .collect();
    Ok(parts.chunks(streams.max(1)).map(<[Vec<Split>]>::concat).collect())
}

/// Gives size, place and centred sum of the first side of the largest split; the first of equal ones.
fn largest(scaled: &[f64], weights: &[f64]) -> (f64, usize, f64) {
    let mean = scaled.iter().sum::<f64>() / real(scaled.len());
    let mut sum: f64 = scaled[..SHORTEST - 1].iter().map(|value| value - mean).sum();
    let mut best = (-1.0, SHORTEST, 0.0);
    for (place, weight) in weights.iter().enumerate() {
        sum += scaled[SHORTEST - 1 + place] - mean;
        let size = sum.abs() * weight;
        if size > best.0 {
            best = (size, place + SHORTEST, sum);
        }
    }
    best
}

/// Room for measuring series of one length.
struct Measuring {
    /// One over the standard deviation of the sum of a first side, for independent values of variance 1.
    weights: Vec<f64>,
    scaled: Vec<f64>,
    keys: Vec<u64>,
}

impl Measuring {
    fn new(length: usize) -> Self {
        let count = real(length);
        let weights = (SHORTEST..=length - SHORTEST)
            .map(|left| 1.0 / (real(left) * (count - real(left)) / count).sqrt())
            .collect();
        Self { weights, scaled: vec![0.0; length], keys: Vec::with_capacity(length) }
    }

    fn measure(&mut self, values: &[f64]) -> Split {
        let (noise, roughness) = self.scale(values);
        let scaled = &self.scaled;
        let count = real(scaled.len());
        let (size, position, share) = largest(scaled, &self.weights);
        let grand = scaled.iter().sum::<f64>() / count;
        let means = (grand + share / real(position), grand - share / (count - real(position)));
        let (mut total, mut neighbours, mut before) = (0.0, 0.0, 0.0);
        for (place, value) in scaled.iter().enumerate() {
            let rest = value - if place < position { means.0 } else { means.1 };
            total += rest * rest;
            neighbours += rest * before;
            before = rest;
        }
        let residual_correlation = if total > 0.0 { neighbours / total } else { 0.0 };
        Split { size, position, roughness, residual_correlation, noise }
    }

    /// Fills `scaled` with the values in units of their noise, cut off around the median; gives noise and roughness.
    fn scale(&mut self, values: &[f64]) -> (f64, f64) {
        let count = values.len();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive share of a length"
        )]
        let trimmed = ((TRIMMED_SHARE * real(count)).ceil() as usize).max(1);
        let near = self.trimmed_squares(values, 1, trimmed);
        let far = self.trimmed_squares(values, 2, 2 * trimmed);
        let near = if near > 0.0 { near } else { self.trimmed_squares(values, 1, 0) };
        let scale = (near / 2.0).sqrt();
        let middle = self.median(values);
        for (slot, value) in self.scaled.iter_mut().zip(values) {
            let distance = (value - middle) / scale;
            *slot = if distance.is_nan() { 0.0 } else { distance.clamp(-CUT_OFF, CUT_OFF) };
        }
        (scale, if near > 0.0 { far / near } else { 1.0 })
    }

    /// Mean of squared differences at a lag, the largest left out.
    fn trimmed_squares(&mut self, values: &[f64], lag: usize, trimmed: usize) -> f64 {
        self.keys.clear();
        // Bits of numbers that are not negative order like the numbers.
        self.keys.extend(values[lag..].iter().zip(values).map(|(later, earlier)| {
            let step = later - earlier;
            (step * step).to_bits()
        }));
        let kept = self.keys.len() - trimmed;
        if trimmed > 0 {
            self.keys.select_nth_unstable(kept);
        }
        self.keys[..kept].iter().map(|&key| f64::from_bits(key)).sum::<f64>() / real(kept)
    }

    fn median(&mut self, values: &[f64]) -> f64 {
        self.keys.clear();
        self.keys.extend(values.iter().map(|value| ordered(value.to_bits())));
        let half = self.keys.len() / 2;
        let is_odd = self.keys.len() % 2 == 1;
        let (below, &mut upper, _) = self.keys.select_nth_unstable(half);
        let upper = f64::from_bits(restored(upper));
        if is_odd {
            return upper;
        }
        let lower = below.iter().max().map_or(upper, |&key| f64::from_bits(restored(key)));
        f64::midpoint(lower, upper)
    }
}

const SIGN: u64 = 1 << 63;

/// Bits that order like the numbers, negative ones included.
fn ordered(bits: u64) -> u64 {
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn restored(key: u64) -> u64 {
    if key & SIGN == 0 { !key } else { key & !SIGN }
}

/// Fills a stationary series with shocks of variance 1.
fn autoregress(source: &mut Normal, rho: f64, series: &mut [f64]) {
    let mut value = source.next() / (1.0 - rho * rho).sqrt();
    for slot in series {
        *slot = value;
        value = rho * value + source.next();
    }
}

#[cfg(test)]
mod tests;
