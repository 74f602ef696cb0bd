//! What can be segmented.

use crate::error::StatsError;
use crate::sample::check_values;

use super::options::{NoiseScale, SegmentOptions};

pub(super) fn check(x: &[f64], y: &[f64], options: &SegmentOptions) -> Result<(), StatsError> {
    const FEWEST: usize = 4;
    check_values(x, FEWEST)?;
    check_values(y, FEWEST)?;
    if x.len() != y.len() {
        return Err(StatsError::Length { found: y.len(), needed: x.len() });
    }
    for (name, value) in [
        ("break penalty", options.break_penalty),
        ("slope penalty", options.slope_penalty),
        ("floor", options.floor),
    ] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(StatsError::Negative { name, value });
        }
        check_size(name, &[value], 0.0)?;
    }
    check_size("x", x, 0.0)?;
    check_size("y", y, 0.0)?;
    if options.noise == NoiseScale::Proportional {
        check_positive("y", y)?;
    }
    if options.power {
        if options.noise == NoiseScale::Constant {
            return Err(StatsError::PowerNoise);
        }
        check_positive("x", x)?;
    }
    Ok(())
}

/// Weights are squares of a share times a level, and sums weigh squares of x and y with them: all stay numbers up to
/// this size, and from its reciprocal on.
const LARGEST: f64 = 1e30;
const SMALLEST: f64 = 1e-30;

pub(super) fn check_positive(name: &'static str, values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|value| *value <= 0.0) {
        Some(index) => Err(StatsError::NotPositive { name, index }),
        None => check_size(name, values, SMALLEST),
    }
}

fn check_size(name: &'static str, values: &[f64], least: f64) -> Result<(), StatsError> {
    match values.iter().find(|value| !(least..=LARGEST).contains(&value.abs())) {
        Some(&value) => Err(StatsError::Size { name, value, least, most: LARGEST }),
        None => Ok(()),
    }
}
