//! The error of the curve that deviations were taken from, which simulated samples must share.

use crate::error::StatsError;
use crate::order::median;
use crate::sample::real;

/// How a fitted curve can have erred at each value.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveError {
    /// Changes of the curve that its parameters allow, on the scale of the deviations; one pair per value.
    pub rows: Vec<[f64; 2]>,
    /// Weights of the fit, one per value.
    pub weights: Vec<f64>,
    /// Whether deviations are factors of the curve (differences otherwise).
    pub is_factor: bool,
    /// Whether the fit cut values beyond 3 sigma.
    pub is_cut: bool,
}

impl CurveError {
    pub(super) fn check(&self, count: usize) -> Result<(), StatsError> {
        for found in [self.rows.len(), self.weights.len()] {
            if found != count {
                return Err(StatsError::Length { found, needed: count });
            }
        }
        Ok(())
    }

    /// Gives simulated deviations the error of a curve fitted to them.
    ///
    /// Both that error and the resolution of the test shrink with the root of the size, so that fewer simulated values
    /// than data have the same law of the statistic in the limit (R. M. Loynes, "The Empirical Distribution Function of
    /// Residuals from Generalised Regression", 1980).
    pub(super) fn apply(&self, sample: &mut [f64]) {
        const TO_SIGMA: f64 = 1.482_602_218_505_602;
        const CUT: f64 = 3.0;
        let (count, size) = (self.rows.len(), sample.len());
        let place = |index: usize| (2 * index + 1) * count / (2 * size);
        let middle = median(sample);
        let away: Vec<f64> = sample.iter().map(|value| (value - middle).abs()).collect();
        let reach = if self.is_cut { CUT * TO_SIGMA * median(&away) } else { f64::INFINITY };
        let cut: Vec<f64> = sample.iter().map(|value| (value - middle).clamp(-reach, reach)).collect();
        let mean = cut.iter().sum::<f64>() / real(size);
        let mut sums = [0.0; 5];
        for (index, value) in cut.iter().enumerate() {
            let [first, second] = self.rows[place(index)];
            let weight = self.weights[place(index)];
            let products = [
                first * first,
                first * second,
                second * second,
                first * (value - mean),
                second * (value - mean),
            ];
            for (sum, product) in sums.iter_mut().zip(products) {
                *sum += weight * product;
            }
        }
        let determinant = sums[0] * sums[2] - sums[1] * sums[1];
        if determinant <= 1e-12 * sums[0] * sums[2] {
            return;
        }
        // Fewer values are simulated than the curve was fitted to.
        let shrink = (real(size) / real(count)).sqrt() / determinant;
        let change = [
            shrink * (sums[2] * sums[3] - sums[1] * sums[4]),
            shrink * (sums[0] * sums[4] - sums[1] * sums[3]),
        ];
        for (index, value) in sample.iter_mut().enumerate() {
            let row = self.rows[place(index)];
            let error = row[0] * change[0] + row[1] * change[1];
            *value = if self.is_factor { *value / (1.0 + error).max(0.1) } else { *value - error };
        }
    }
}
