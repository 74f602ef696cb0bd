//! Ordinary least squares with what R's `summary(lm)` prints and robust standard errors.
//!
//! Sums of products are taken in 106 bits around a rounded mean, so that the normal equations lose no more digits than a
//! QR decomposition in double precision would (their condition number is squared, and so is the precision).

use crate::error::StatsError;
use crate::sample::{check_values, real};

mod robust;
mod solve;

use solve::{Centred, Solution};

/// What is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// A constant is the first coefficient.
    Fitted,
    /// The model goes through the origin.
    Zero,
}

/// A fitted linear model. A column that others determine has coefficients that are not numbers, as in R.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// The intercept, if fitted, then one per column.
    pub coefficients: Vec<f64>,
    /// Classical standard errors.
    pub standard_errors: Vec<f64>,
    /// HC3 standard errors (`MacKinnon` and White 1985).
    pub hc3_errors: Vec<f64>,
    /// Cluster-robust standard errors (CR1), where clusters were given.
    pub cluster_errors: Option<Vec<f64>>,
    /// Standard deviation of the residuals, divisor: residual degrees of freedom.
    pub sigma: f64,
    /// Residual degrees of freedom.
    pub residual_df: usize,
    /// Coefficients estimated, the intercept included.
    pub rank: usize,
    /// Sum of squared residuals.
    pub residual_sum: f64,
    /// Share of the variance explained (around zero without intercept).
    pub r_squared: f64,
    /// The same, corrected for the number of coefficients.
    pub adjusted_r_squared: f64,
    /// F statistic and its numerator degrees of freedom; none for an intercept alone.
    pub f_statistic: Option<(f64, usize)>,
    /// Residual of every observation.
    pub residuals: Vec<f64>,
    /// Leverage of every observation.
    pub leverage: Vec<f64>,
    /// Cook's distance of every observation.
    pub cook: Vec<f64>,
}

/// Fits `response` on `columns`.
///
/// # Errors
///
/// If there is no observation, a length differs, a value is not finite, or there is nothing to fit.
pub fn fit_linear(
    columns: &[&[f64]],
    response: &[f64],
    intercept: Intercept,
    clusters: Option<&[i64]>,
) -> Result<LinearFit, StatsError> {
    check_values(response, 1)?;
    for column in columns {
        check_length(column.len(), response.len())?;
        check_values(column, 1)?;
    }
    if let Some(labels) = clusters {
        check_length(labels.len(), response.len())?;
    }
    if columns.is_empty() && intercept == Intercept::Zero {
        return Err(StatsError::Zero { name: "number of coefficients" });
    }
    let centred = Centred::new(columns, response, intercept);
    let solution = Solution::new(&centred);
    Ok(summarise(&centred, &solution, clusters))
}

fn check_length(found: usize, needed: usize) -> Result<(), StatsError> {
    if found == needed { Ok(()) } else { Err(StatsError::Length { found, needed }) }
}

fn summarise(centred: &Centred, solution: &Solution, clusters: Option<&[i64]>) -> LinearFit {
    let count = centred.response.len();
    let has_constant = centred.intercept == Intercept::Fitted;
    let rank = solution.rank() + usize::from(has_constant);
    let residual_df = count.saturating_sub(rank);
    let (residuals, sum) = solution.residuals(centred);
    let residual_sum = sum.rounded();
    let explained = solution.explained.rounded();
    let variance = if residual_df > 0 { residual_sum / real(residual_df) } else { f64::NAN };
    let leverage = robust::leverage(centred, solution);
    let cook = robust::cook(&residuals, &leverage, variance, rank);
    let total = explained + residual_sum;
    let r_squared = if total > 0.0 { explained / total } else { f64::NAN };
    let with_df = real(count - usize::from(has_constant)) / real(residual_df);
    let fitted = solution.rank();
    let f_statistic = (fitted > 0).then(|| (explained / real(fitted) / variance, fitted));
    let covariance = robust::classical(centred, solution, variance);
    let hc3 = robust::heteroskedastic(centred, solution, &residuals, &leverage);
    let clustered = clusters.map(|labels| robust::clustered(centred, solution, &residuals, labels));
    let errors = |form: &robust::Covariance| robust::standard_errors(centred, solution, form);
    LinearFit {
        coefficients: solution.coefficients(centred),
        standard_errors: errors(&covariance),
        hc3_errors: errors(&hc3),
        cluster_errors: clustered.as_ref().map(errors),
        sigma: variance.sqrt(),
        residual_df,
        rank,
        residual_sum,
        r_squared: if fitted == 0 { 0.0 } else { r_squared },
        adjusted_r_squared: if fitted == 0 { 0.0 } else { 1.0 - (1.0 - r_squared) * with_df },
        f_statistic,
        residuals,
        leverage,
        cook,
    }
}

#[cfg(test)]
mod tests;
