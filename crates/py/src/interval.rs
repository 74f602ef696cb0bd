//! Intervals of `steelyard-stats` over arrays.

#![allow(clippy::too_many_arguments, reason = "options are keyword-only on the Python side")]

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use steelyard_stats::{Bootstrapped, Contrast, Plan, Question, SampleOf, Scheme, Statistic};

use crate::stats::{AnalysisError, contiguous, raise, row, sizes};

/// Values, labels of clusters, labels of strata, length of a block.
type Given<'py> = (
    PyReadonlyArray1<'py, f64>,
    Option<PyReadonlyArray1<'py, i64>>,
    Option<PyReadonlyArray1<'py, i64>>,
    Option<usize>,
);

/// The same, copied, so that the interpreter lock can be released.
struct Owned {
    values: Vec<f64>,
    clusters: Option<Vec<usize>>,
    strata: Option<Vec<usize>>,
    block: Option<usize>,
}

impl Owned {
    fn of(given: &Given<'_>) -> PyResult<Self> {
        let labels = |found: &Option<PyReadonlyArray1<'_, i64>>| found.as_ref().map(sizes).transpose();
        Ok(Self {
            values: contiguous(&given.0),
            clusters: labels(&given.1)?,
            strata: labels(&given.2)?,
            block: given.3,
        })
    }

    fn sample(&self) -> SampleOf<'_> {
        let scheme = match (self.block, &self.clusters, &self.strata) {
            (Some(length), ..) => Scheme::Blocks(length),
            (None, None, None) => Scheme::Plain,
            (None, clusters, strata) => {
                Scheme::Units { clusters: clusters.as_deref(), strata: strata.as_deref() }
            }
        };
        SampleOf { values: &self.values, scheme }
    }
}

fn statistic(name: &str, parameters: &[f64]) -> PyResult<Statistic> {
    Ok(match (name, parameters) {
        ("mean", []) => Statistic::Mean,
        ("sd", []) => Statistic::Deviation,
        ("cv", []) => Statistic::Variation,
        ("quantile", [p]) => Statistic::Quantile(*p),
        ("harrell_davis", [p]) => Statistic::HarrellDavis(*p),
        ("range", [low, high]) => Statistic::Range(*low, *high),
        ("quantile_ratio", [low, high]) => Statistic::TailRatio(*low, *high),
        ("mad", []) => Statistic::MedianDeviation,
        ("trimmed_mean", [share]) => Statistic::TrimmedMean(*share),
        _ => {
            let count = parameters.len();
            return Err(AnalysisError::new_err(format!("no statistic `{name}` with {count} parameters")));
        }
    })
}

fn flat<'py>(py: Python<'py>, found: &Bootstrapped) -> Bound<'py, PyArray1<f64>> {
    #[expect(clippy::cast_precision_loss, reason = "a number of resamples is below 2^53")]
    let undefined = found.undefined as f64;
    PyArray1::from_vec(py, [row(&found.intervals).as_slice(), &[undefined]].concat())
}

/// Bootstrap one statistic: estimate, four pairs of limits, resamples without a value.
#[pyfunction]
#[pyo3(signature = (sample, name, parameters, *, bca, resamples, level, seed, cell))]
pub(crate) fn bootstrap<'py>(
    py: Python<'py>,
    sample: Given<'py>,
    name: &str,
    parameters: Vec<f64>,
    bca: bool,
    resamples: usize,
    level: f64,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let question = Question { statistic: statistic(name, &parameters)?, bca };
    let owned = Owned::of(&sample)?;
    let plan = Plan { resamples, level, seed, cell };
    let found = py.detach(|| steelyard_stats::bootstrap(owned.sample(), &question, &plan)).map_err(raise)?;
    Ok(flat(py, &found))
}

/// Bootstrap the ratio or difference of a statistic, second against first.
#[pyfunction]
#[pyo3(signature = (first, second, name, parameters, *, contrast, bca, resamples, level, seed, cell))]
pub(crate) fn contrast_bootstrap<'py>(
    py: Python<'py>,
    first: Given<'py>,
    second: Given<'py>,
    name: &str,
    parameters: Vec<f64>,
    contrast: &str,
    bca: bool,
    resamples: usize,
    level: f64,
    seed: u64,
    cell: u64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let question = Question { statistic: statistic(name, &parameters)?, bca };
    let sides = [Owned::of(&first)?, Owned::of(&second)?];
    let contrast = match contrast {
        "ratio" => Contrast::Ratio,
        "difference" => Contrast::Difference,
        other => return Err(AnalysisError::new_err(format!("no contrast `{other}`"))),
    };
    let plan = Plan { resamples, level, seed, cell };
    let found = py
        .detach(|| {
            let samples = [sides[0].sample(), sides[1].sample()];
            steelyard_stats::contrast_bootstrap(samples, contrast, &question, &plan)
        })
        .map_err(raise)?;
    Ok(flat(py, &found))
}

/// Exact limits of a quantile, and the coverage they have.
#[pyfunction]
#[pyo3(signature = (values, p, *, level))]
pub(crate) fn order_interval(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    p: f64,
    level: f64,
) -> PyResult<(f64, f64, f64)> {
    let values = contiguous(&values);
    let found = py.detach(|| steelyard_stats::order_interval(&values, p, level)).map_err(raise)?;
    Ok((found.limits.0, found.limits.1, found.coverage))
}

/// Length of a block for the block bootstrap.
#[pyfunction]
pub(crate) fn block_length(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> PyResult<usize> {
    let values = contiguous(&values);
    py.detach(|| steelyard_stats::block_length(&values)).map_err(raise)
}

/// Hodges-Lehmann shift, its limits, and whether they are exact.
#[pyfunction]
#[pyo3(signature = (first, second, *, level))]
pub(crate) fn shift_interval(
    py: Python<'_>,
    first: PyReadonlyArray1<'_, f64>,
    second: PyReadonlyArray1<'_, f64>,
    level: f64,
) -> PyResult<(f64, f64, f64, bool)> {
    let (first, second) = (contiguous(&first), contiguous(&second));
    let found = py.detach(|| steelyard_stats::shift_interval(&first, &second, level)).map_err(raise)?;
    Ok((found.estimate, found.limits.0, found.limits.1, found.exact))
}

/// Welch's t and its p-value by random relabelling.
#[pyfunction]
#[pyo3(signature = (first, second, *, resamples, seed, cell))]
pub(crate) fn permutation_test(
    py: Python<'_>,
    first: PyReadonlyArray1<'_, f64>,
    second: PyReadonlyArray1<'_, f64>,
    resamples: usize,
    seed: u64,
    cell: u64,
) -> PyResult<(f64, f64)> {
    let (first, second) = (contiguous(&first), contiguous(&second));
    let plan = Plan { resamples, level: 0.95, seed, cell };
    let found = py.detach(|| steelyard_stats::permutation_test(&first, &second, &plan)).map_err(raise)?;
    Ok((found.statistic, found.p_value))
}
