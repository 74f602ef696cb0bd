//! How long a block of a series must be for the block bootstrap.

use crate::error::StatsError;
use crate::sample::{check_values, real, whole};
use crate::sum::mean;

/// Gives the block length for the circular block bootstrap of the mean, from the series itself; 1 to half the series.
///
/// Source: D. N. Politis, H. White, "Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23, 2004,
/// with the correction of A. Patton, D. N. Politis, H. White, Econometric Reviews 28, 2009: (2 G^2 / D)^(1/3) n^(1/3) with
/// D = 4/3 g(0)^2, flat-top lag window, c = 2 and `K_n` = max(5, sqrt(log10 n)).
///
/// # Errors
///
/// If the series has fewer than 4 values or one that is not finite.
pub fn block_length(values: &[f64]) -> Result<usize, StatsError> {
    check_values(values, 4)?;
    let count = real(values.len());
    let longest = (3.0 * count.sqrt()).min(count / 3.0).ceil();
    let optimal = optimal_length(values).unwrap_or(1.0).min(longest);
    Ok(whole(optimal.ceil()).clamp(1, values.len() / 2))
}

/// The estimated optimum; none for a series without spread or without a positive spectrum at 0.
fn optimal_length(values: &[f64]) -> Option<f64> {
    let count = real(values.len());
    let centre = mean(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let covariance =
        |lag: usize| deviations.iter().zip(&deviations[lag..]).map(|(a, b)| a * b).sum::<f64>() / count;
    let variance = covariance(0);
    if variance <= 0.0 {
        return None;
    }
    let quiet_lags = whole(libm::log10(count).sqrt().ceil()).max(5);
    let last = (whole(count.sqrt().ceil()) + quiet_lags).min(values.len() - 1);
    let bound = 2.0 * (libm::log10(count) / count).sqrt() * variance;
    let mut known = vec![variance];
    let mut quiet = 0;
    let mut lag = 0;
    // The smallest lag followed by so many negligible ones.
    while quiet < quiet_lags && lag < last {
        lag += 1;
        known.push(covariance(lag));
        quiet = if known[lag].abs() < bound { quiet + 1 } else { 0 };
    }
    let width = if quiet < quiet_lags { last } else { (2 * (lag - quiet).max(1)).min(last) };
    for further in known.len()..=width {
        known.push(covariance(further));
    }
    let (mut slope, mut spectrum) = (0.0, variance);
    for (lag, covariance) in known.iter().enumerate().take(width + 1).skip(1) {
        let place = real(lag) / real(width);
        let window = if place <= 0.5 { 1.0 } else { 2.0 * (1.0 - place) };
        slope += 2.0 * window * real(lag) * covariance;
        spectrum += 2.0 * window * covariance;
    }
    (spectrum > 0.0).then(|| libm::cbrt(1.5 * (slope / spectrum) * (slope / spectrum) * count))
}

#[cfg(test)]
mod tests {
    use super::{block_length, optimal_length};
    use crate::special::normal_quantile;
    use crate::stream::{open_uniform, stream};

    fn series(correlation: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut generator = stream(seed, 0, 0);
        let mut current = 0.0;
        (0..count)
            .map(|_| {
                current = correlation * current + normal_quantile(open_uniform(&mut generator));
                current
            })
            .collect()
    }

    /// For a first-order series G / g(0) is 2 rho / (1 - rho^2) in closed form.
    #[test]
    fn lengths_of_first_order_series_are_those_of_theory() {
        for correlation in [0.3, 0.5, 0.9_f64] {
            let ratio = 2.0 * correlation / (1.0 - correlation * correlation);
            let expected = (1.5 * ratio * ratio * 20_000.0).cbrt();
            let mut found: Vec<f64> =
                (0..31).map(|seed| optimal_length(&series(correlation, 20_000, seed)).unwrap()).collect();
            found.sort_by(f64::total_cmp);
            assert!((found[15] / expected - 1.0).abs() < 0.15, "{correlation}: {} {expected}", found[15]);
        }
    }

    #[test]
    fn independent_and_constant_values_get_short_blocks() {
        let mut found: Vec<usize> =
            (0..31).map(|seed| block_length(&series(0.0, 1000, seed)).unwrap()).collect();
        found.sort_unstable();
        assert!(found[15] <= 4, "{}", found[15]);
        assert_eq!(block_length(&[3.0; 50]), Ok(1));
        // A trend never loses its memory: long blocks, but at most 3 sqrt n.
        let trend: Vec<f64> = (0..100_u32).map(f64::from).collect();
        assert!((10..=30).contains(&block_length(&trend).unwrap()));
        assert!(block_length(&[1.0, 2.0, 3.0]).is_err());
    }
}
