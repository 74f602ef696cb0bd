//! Ordinary least squares with what R's `summary(lm)` prints and robust standard errors.
//!
//! Sums of products are taken in 106 bits around a rounded mean, so that the normal equations lose no more digits than a
//! QR decomposition in double precision would (their condition number is squared, and so is the precision).

use crate::error::StatsError;
use crate::sample::{check_values, real};

mod centred;
mod clusters;
mod parts;
mod quartiles;
mod robust;
mod single;
mod solve;
mod sums;

use centred::Centred;
pub use centred::Intercept;
use solve::Solution;

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
    /// Quantiles of type 7 of the residuals at 0, 1/4, 1/2, 3/4 and 1.
    pub residual_quartiles: [f64; 5],
    /// Mean of the squares of the fitted values.
    pub fitted_square: f64,
}

/// What a fit says of each observation.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearRows {
    /// Observed less fitted.
    pub residuals: Vec<f64>,
    /// Diagonal of the hat matrix.
    pub leverage: Vec<f64>,
    /// Cook's distance.
    pub cook: Vec<f64>,
    /// Sum of squared residuals: the same bits as [`LinearFit::residual_sum`] of the same data.
    pub residual_sum: f64,
}

/// Fits `response` on `columns`.
///
/// One column or none costs a few passes over the data and no memory that grows with them; more cost one number of memory
/// per observation.
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
    check(columns, response, intercept)?;
    if let Some(labels) = clusters {
        check_length(labels.len(), response.len())?;
    }
    let centred = Centred::new(columns, response, intercept)?;
    let solution = Solution::new(&centred);
    Ok(summarise(&centred, &solution, clusters))
}

/// Gives residual, leverage and influence of each observation in the fit of [`fit_linear`].
///
/// # Errors
///
/// As [`fit_linear`].
pub fn linear_rows(
    columns: &[&[f64]],
    response: &[f64],
    intercept: Intercept,
) -> Result<LinearRows, StatsError> {
    check(columns, response, intercept)?;
    let centred = Centred::new(columns, response, intercept)?;
    let solution = Solution::new(&centred);
    let rank = solution.rank() + centred.constants();
    let (residuals, residual_sum) = if centred.is_simple() {
        let line = single::Line::new(&centred, &solution);
        (line.residuals(), line.survey().residual_sum.rounded())
    } else {
        let (residuals, sum) = solution.residuals(&centred);
        (residuals, sum.rounded())
    };
    let leverage = robust::leverage(&centred, &solution);
    let cook = robust::cook(&residuals, &leverage, variance(residual_sum, response.len(), rank), rank);
    Ok(LinearRows { residuals, leverage, cook, residual_sum })
}

fn check(columns: &[&[f64]], response: &[f64], intercept: Intercept) -> Result<(), StatsError> {
    // Whether the values are finite is seen when they are read for their means.
    check_values(&response[..response.len().min(1)], 1)?;
    for column in columns {
        check_length(column.len(), response.len())?;
    }
    if u32::try_from(response.len()).is_err() {
        return Err(StatsError::TooMany { found: response.len() });
    }
    if columns.is_empty() && intercept == Intercept::Zero {
        return Err(StatsError::Zero { name: "number of coefficients" });
    }
    Ok(())
}

fn check_length(found: usize, needed: usize) -> Result<(), StatsError> {
    if found == needed { Ok(()) } else { Err(StatsError::Length { found, needed }) }
}

fn variance(residual_sum: f64, count: usize, rank: usize) -> f64 {
    let residual_df = count.saturating_sub(rank);
    if residual_df > 0 { residual_sum / real(residual_df) } else { f64::NAN }
}

/// What is added up over the residuals.
struct Residuals {
    sum: f64,
    quartiles: [f64; 5],
    /// Sums of weighted squares for HC3, and by cluster for CR1.
    hc3: robust::Covariance,
    clustered: Option<robust::Clustered>,
}

fn read_residuals(centred: &Centred<'_>, solution: &Solution, clusters: Option<&[i64]>) -> Residuals {
    if centred.is_simple() {
        let line = single::Line::new(centred, solution);
        let survey = line.survey();
        let (quartiles, clustered) = rayon::join(
            || quartiles::quartiles(&line, survey.lowest, survey.highest),
            || clusters.map(|labels| clusters::of_line(&line, labels)),
        );
        return Residuals { sum: survey.residual_sum.rounded(), quartiles, hc3: survey.meat(), clustered };
    }
    let (residuals, sum) = solution.residuals(centred);
    let leverage = robust::leverage(centred, solution);
    let hc3 = robust::heteroskedastic(centred, solution, &residuals, &leverage);
    let clustered = clusters.map(|labels| clusters::of_columns(centred, solution, &residuals, labels));
    Residuals { sum: sum.rounded(), quartiles: quartiles::of_values(residuals), hc3, clustered }
}

fn summarise(centred: &Centred<'_>, solution: &Solution, clusters: Option<&[i64]>) -> LinearFit {
    let count = centred.count();
    let has_constant = centred.intercept == Intercept::Fitted;
    let rank = solution.rank() + centred.constants();
    let residual_df = count.saturating_sub(rank);
    let found = read_residuals(centred, solution, clusters);
    let explained = solution.explained.rounded();
    let variance = variance(found.sum, count, rank);
    let total = explained + found.sum;
    let r_squared = if total > 0.0 { explained / total } else { f64::NAN };
    let with_df = real(count - usize::from(has_constant)) / real(residual_df);
    let fitted = solution.rank();
    let f_statistic = (fitted > 0).then(|| (explained / real(fitted) / variance, fitted));
    let bread = robust::bread(centred, solution);
    let errors = |form: &robust::Covariance| robust::standard_errors(centred, solution, form);
    let sandwich = |meat: &robust::Covariance| errors(&robust::sandwich(&bread, meat));
    let mean = if has_constant { solution.response_mean(centred) } else { 0.0 };
    LinearFit {
        coefficients: solution.coefficients(centred),
        standard_errors: errors(&robust::times_number(&bread, variance)),
        hc3_errors: sandwich(&found.hc3),
        cluster_errors: found.clustered.map(|clustered| sandwich(&clustered.meat(count))),
        sigma: variance.sqrt(),
        residual_df,
        rank,
        residual_sum: found.sum,
        r_squared: if fitted == 0 { 0.0 } else { r_squared },
        adjusted_r_squared: if fitted == 0 { 0.0 } else { 1.0 - (1.0 - r_squared) * with_df },
        f_statistic,
        residual_quartiles: found.quartiles,
        fitted_square: mean * mean + explained / real(count),
    }
}

#[cfg(test)]
mod tests;
