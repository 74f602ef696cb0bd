//! Dependence inside a series.

use crate::error::StatsError;
use crate::sample::{check_values, real};
use crate::sum::{exact_sum, mean};

/// Gives the autocorrelation at lags 0 to `lags` (at most n - 1), each autocovariance divided by n; all 0 but the first for a constant series.
///
/// # Errors
///
/// If the series has fewer than 2 values or one that is not finite.
pub fn autocorrelation(values: &[f64], lags: usize) -> Result<Vec<f64>, StatsError> {
    check_values(values, 2)?;
    let series = Centred::of(values);
    Ok((0..=lags.min(values.len() - 1)).map(|lag| series.at(lag)).collect())
}

/// Gives the autocorrelation at lag 1, and the effective sample size.
///
/// # Errors
///
/// As `effective_size`.
pub fn dependence(values: &[f64]) -> Result<(f64, f64), StatsError> {
    check_values(values, 2)?;
    let series = Centred::of(values);
    Ok((series.at(1), series.effective_size()))
}

/// Gives the effective sample size by the initial positive sequence (Geyer 1992, section 3.3): n / (2 sum of correlations - 1).
///
/// Between 1 and n: a series that alternates is not credited with more values than it has.
///
/// # Errors
///
/// If the series has fewer than 2 values or one that is not finite.
pub fn effective_size(values: &[f64]) -> Result<f64, StatsError> {
    check_values(values, 2)?;
    Ok(Centred::of(values).effective_size())
}

struct Centred {
    deviations: Vec<f64>,
    variance: f64,
}

impl Centred {
    fn of(values: &[f64]) -> Self {
        let centre = mean(values);
        let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
        let variance = exact_sum(deviations.iter().map(|d| d * d));
        Self { deviations, variance }
    }

    fn effective_size(&self) -> f64 {
        let count = self.deviations.len();
        let mut time = -1.0;
        let mut lag = 0;
        while lag + 1 < count {
            let pair = self.at(lag) + self.at(lag + 1);
            if pair <= 0.0 {
                break;
            }
            time += 2.0 * pair;
            lag += 2;
        }
        (real(count) / time.max(1.0)).max(1.0)
    }

    fn at(&self, lag: usize) -> f64 {
        if lag == 0 {
            return 1.0;
        }
        if self.variance <= 0.0 {
            return 0.0;
        }
        let later = &self.deviations[lag..];
        self.deviations.iter().zip(later).map(|(a, b)| a * b).sum::<f64>() / self.variance
    }
}

#[cfg(test)]
mod tests {
    use super::{autocorrelation, effective_size};
    use crate::special::normal_quantile;
    use crate::stream::{open_uniform, stream};

    /// R: `acf(c(1, 2, 3, 4, 5), plot = FALSE)`: 1, 0.4, -0.1, -0.4, -0.4.
    #[test]
    fn correlations_are_those_of_the_usual_estimator() {
        let found = autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0], 9).unwrap();
        for (value, expected) in found.iter().zip([1.0, 0.4, -0.1, -0.4, -0.4]) {
            assert!((value - expected).abs() < 1e-12);
        }
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn a_first_order_series_loses_its_known_share() {
        let mut generator = stream(3, 0, 0);
        let mut current = 0.0;
        let values: Vec<f64> = (0..20_000)
            .map(|_| {
                current = 0.5 * current + normal_quantile(open_uniform(&mut generator));
                current
            })
            .collect();
        // (1 - rho) / (1 + rho) = 1/3.
        let found = effective_size(&values).unwrap() / 20_000.0;
        assert!((found - 1.0 / 3.0).abs() < 0.04, "{found}");
    }

    #[test]
    fn constant_and_alternating_series_stay_within_bounds() {
        assert!((effective_size(&[1.0; 50]).unwrap() - 50.0).abs() < 1e-9);
        let alternating: Vec<f64> = (0..50).map(|i| f64::from(i % 2)).collect();
        assert!((effective_size(&alternating).unwrap() - 50.0).abs() < 1e-9);
    }
}
