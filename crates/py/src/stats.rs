//! Kernels of `steelyard-stats` over arrays.
//!
//! Arrays may be read-only; they are copied once where the kernel sorts. The interpreter lock is released while a kernel works.

#![allow(clippy::too_many_arguments, reason = "options are keyword-only on the Python side")]

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steelyard_stats::{
    ChangeOptions, ClusterOptions, Intervals, Plan, StatsError, cluster_bootstrap as clusters,
    moment_bootstrap_groups,
};

import_exception!(steelyard.errors, AnalysisError);

pub(crate) fn raise(error: StatsError) -> PyErr {
    Python::attach(|py| {
        let hint = PyDict::new(py);
        let made = hint
            .set_item("hint", error.hint())
            .and_then(|()| py.get_type::<AnalysisError>().call((error.to_string(),), Some(&hint)));
        made.map_or_else(|problem| problem, PyErr::from_value)
    })
}

pub(crate) fn contiguous(values: &PyReadonlyArray1<'_, f64>) -> Vec<f64> {
    values.as_array().to_vec()
}

pub(crate) fn sizes(lengths: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    lengths
        .as_array()
        .iter()
        .map(|&length| {
            usize::try_from(length).map_err(|_| {
                AnalysisError::new_err(format!("a group has the length {length}; allowed: 0 or more"))
            })
        })
        .collect()
}

/// Estimate, then the limits of percentile, basic, `BCa` and studentised intervals.
pub(crate) fn row(found: &Intervals) -> [f64; 9] {
    let Intervals { estimate, percentile, basic, bca, studentised } = *found;
    [estimate, percentile.0, percentile.1, basic.0, basic.1, bca.0, bca.1, studentised.0, studentised.1]
}

fn table<'py, const WIDTH: usize>(
    py: Python<'py>,
    rows: &[[f64; WIDTH]],
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_slice(py, rows.as_flattened()).reshape([rows.len(), WIDTH])
}

/// Bootstrap mean, standard deviation and coefficient of variation of groups, three rows per group.
#[pyfunction]
#[pyo3(signature = (values, lengths, *, resamples, level, seed, cell))]
pub(crate) fn moment_bootstrap<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    lengths: PyReadonlyArray1<'py, i64>,
    resamples: usize,
    level: f64,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (values, lengths) = (contiguous(&values), sizes(&lengths)?);
    let plan = Plan { resamples, level, seed, cell };
    let found = py.detach(|| moment_bootstrap_groups(&values, &lengths, &plan)).map_err(raise)?;
    let rows: Vec<_> = found
        .iter()
        .flat_map(|group| [row(&group.mean), row(&group.standard_deviation), row(&group.variation)])
        .collect();
    table(py, &rows)
}

/// Bootstrap quantiles, then differences of pairs of them, by order statistics.
#[pyfunction]
#[pyo3(signature = (values, probabilities, pairs, *, resamples, level, seed, cell))]
pub(crate) fn quantile_bootstrap<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    probabilities: Vec<f64>,
    pairs: Vec<(usize, usize)>,
    resamples: usize,
    level: f64,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    if pairs.iter().any(|&(low, high)| low.max(high) >= probabilities.len()) {
        let count = probabilities.len();
        return Err(AnalysisError::new_err(format!("a pair names a probability beyond the {count} given")));
    }
    let values = contiguous(&values);
    let plan = Plan { resamples, level, seed, cell };
    let found = py
        .detach(|| steelyard_stats::quantile_bootstrap(&values, &probabilities, &pairs, &plan))
        .map_err(raise)?;
    table(py, &found.iter().map(row).collect::<Vec<_>>())
}

/// Bootstrap the median and the unscaled median absolute deviation by resampling, two rows.
#[pyfunction]
#[pyo3(signature = (values, *, resamples, level, seed, cell))]
pub(crate) fn deviation_bootstrap<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    resamples: usize,
    level: f64,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let values = contiguous(&values);
    let plan = Plan { resamples, level, seed, cell };
    let found = py.detach(|| steelyard_stats::deviation_bootstrap(&values, &plan)).map_err(raise)?;
    table(py, &[row(&found.median), row(&found.deviation)])
}

/// Mean, standard deviation, coefficient of variation and median of resamples of whole units.
#[pyfunction]
#[pyo3(signature = (values, lengths, *, within, resamples, seed, cell))]
pub(crate) fn cluster_bootstrap<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    lengths: PyReadonlyArray1<'py, i64>,
    within: bool,
    resamples: usize,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (values, lengths) = (contiguous(&values), sizes(&lengths)?);
    let options = if within { ClusterOptions::Within } else { ClusterOptions::UnitsOnly };
    let plan = Plan { resamples, level: 0.95, seed, cell };
    let rows = py.detach(|| clusters(&values, &lengths, options, &plan)).map_err(raise)?;
    table(py, &rows)
}

/// Statistic, p-value and whether it is exact.
#[pyfunction]
pub(crate) fn kolmogorov_smirnov(
    py: Python<'_>,
    first: PyReadonlyArray1<'_, f64>,
    second: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, f64, bool)> {
    let (first, second) = (contiguous(&first), contiguous(&second));
    let found = py.detach(|| steelyard_stats::kolmogorov_smirnov(&first, &second)).map_err(raise)?;
    Ok((found.statistic, found.p_value, found.exact))
}

/// Positions where the level of a series changes.
#[pyfunction]
#[pyo3(signature = (values, *, penalty, shortest))]
pub(crate) fn change_points(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    penalty: f64,
    shortest: usize,
) -> PyResult<Vec<usize>> {
    let values = contiguous(&values);
    let options = ChangeOptions { penalty, shortest };
    py.detach(|| steelyard_stats::change_points(&values, &options)).map_err(raise)
}

/// Scale of the noise of a series from differences of neighbours.
#[pyfunction]
pub(crate) fn noise_scale(values: PyReadonlyArray1<'_, f64>) -> f64 {
    steelyard_stats::noise_scale(&contiguous(&values))
}

/// Autocorrelation at lags 0 to `lags`.
#[pyfunction]
pub(crate) fn autocorrelation<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    lags: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let values = contiguous(&values);
    let found = py.detach(|| steelyard_stats::autocorrelation(&values, lags)).map_err(raise)?;
    Ok(PyArray1::from_vec(py, found))
}

/// Effective sample size by the initial positive sequence.
#[pyfunction]
pub(crate) fn effective_size(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
    let values = contiguous(&values);
    py.detach(|| steelyard_stats::effective_size(&values)).map_err(raise)
}

/// Autocorrelation at lag 1, and effective sample size.
#[pyfunction]
pub(crate) fn dependence(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<(f64, f64)> {
    let values = contiguous(&values);
    py.detach(|| steelyard_stats::dependence(&values)).map_err(raise)
}

/// Places of the corners of the greatest convex function below points.
#[pyfunction]
pub(crate) fn convex_corners<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    y: PyReadonlyArray1<'py, f64>,
) -> Bound<'py, PyArray1<i64>> {
    let (x, y) = (contiguous(&x), contiguous(&y));
    let corners = py.detach(|| steelyard_stats::convex_corners(&x, &y));
    PyArray1::from_iter(py, corners.into_iter().map(|place| i64::try_from(place).unwrap_or(i64::MAX)))
}

/// Sum, rounded once.
#[pyfunction]
pub(crate) fn exact_sum(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> f64 {
    match values.as_slice() {
        Ok(values) => py.detach(|| steelyard_stats::exact_sum(values.iter().copied())),
        Err(_) => steelyard_stats::exact_sum(values.as_array().iter().copied()),
    }
}

/// Standard deviation (divisor n - 1) by exact sums; values are not copied.
#[pyfunction]
pub(crate) fn standard_deviation(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> f64 {
    match values.as_slice() {
        Ok(values) => py.detach(|| steelyard_stats::standard_deviation(values)),
        Err(_) => steelyard_stats::standard_deviation(&contiguous(&values)),
    }
}

/// Quantile of type 7 of ascending values.
#[pyfunction]
pub(crate) fn quantile(ascending: PyReadonlyArray1<'_, f64>, p: f64) -> f64 {
    steelyard_stats::quantile(&contiguous(&ascending), p)
}
