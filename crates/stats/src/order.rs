//! Quantiles.

use crate::sample::{real, whole};

/// Gives the quantile of type 7 (Hyndman and Fan 1996; R's default) of values in ascending order.
///
/// Not a number for an empty slice; `p` is clamped to [0, 1].
#[must_use]
pub fn quantile(ascending: &[f64], p: f64) -> f64 {
    if ascending.is_empty() {
        return f64::NAN;
    }
    let position = Position::of(ascending.len(), p);
    let low = ascending[position.rank - 1];
    if position.share > 0.0 { low + position.share * (ascending[position.rank] - low) } else { low }
}

/// Where a type-7 quantile lies: the rank (from 1) at or below it, and the share of the way to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    pub(crate) rank: usize,
    pub(crate) share: f64,
}

impl Position {
    pub(crate) fn of(count: usize, p: f64) -> Self {
        let place = (real(count) - 1.0) * p.clamp(0.0, 1.0);
        let below = whole(place);
        Self { rank: below + 1, share: place - real(below) }
    }
}

/// Gives the median of values in any order; not a number for an empty slice.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let position = Position::of(values.len(), 0.5);
    let mut copy = values.to_vec();
    let (_, &mut low, rest) = copy.select_nth_unstable_by(position.rank - 1, f64::total_cmp);
    match rest.iter().copied().min_by(f64::total_cmp) {
        Some(next) if position.share > 0.0 => low + position.share * (next - low),
        _ => low,
    }
}

/// Gives the median absolute deviation from the median, unscaled.
#[must_use]
pub fn median_absolute_deviation(values: &[f64]) -> f64 {
    let centre = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances)
}

#[cfg(test)]
mod tests {
    use super::{median, median_absolute_deviation, quantile};

    /// R: `quantile(c(1, 2, 4, 8, 16), c(0, .1, .25, .5, .9, 1))` is 1, 1.4, 2, 4, 12.8, 16.
    #[test]
    fn quantiles_are_those_of_type_seven() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        for (p, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (1.0, 16.0)] {
            assert!((quantile(&values, p) - expected).abs() < 1e-12, "{p}");
        }
    }

    /// R: `mad(c(1, 2, 3, 4, 100), constant = 1)` is 1.
    #[test]
    fn the_median_absolute_deviation_ignores_an_outlier() {
        assert!((median_absolute_deviation(&[100.0, 1.0, 3.0, 2.0, 4.0]) - 1.0).abs() < 1e-15);
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-15);
        assert!(median(&[]).is_nan());
    }
}
