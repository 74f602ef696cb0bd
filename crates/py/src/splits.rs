//! Bindings of the largest split of a series.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use steelyard_stats::Split;

use crate::stats::{contiguous, raise};

#[expect(clippy::cast_precision_loss, reason = "a position in a series that fits memory")]
fn row(split: &Split) -> [f64; 4] {
    [split.size, split.position as f64, split.roughness, split.residual_correlation]
}

/// Largest split of a series: size, position, roughness, correlation of what is left, noise.
#[pyfunction]
pub(crate) fn measure_split(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
) -> PyResult<(f64, usize, f64, f64, f64)> {
    let values = contiguous(&values);
    let found = py.detach(|| steelyard_stats::measure_split(&values)).map_err(raise)?;
    Ok((found.size, found.position, found.roughness, found.residual_correlation, found.noise))
}

/// Measures of simulated series without change: one row per series, those of each autocorrelation together.
#[pyfunction]
#[pyo3(signature = (length, draws, grid, *, seed))]
pub(crate) fn simulated_splits<'py>(
    py: Python<'py>,
    length: usize,
    draws: usize,
    grid: PyReadonlyArray1<'py, f64>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let grid = contiguous(&grid);
    let found = py.detach(|| steelyard_stats::simulated_splits(length, draws, &grid, seed)).map_err(raise)?;
    let rows: Vec<[f64; 4]> = found.iter().flatten().map(row).collect();
    PyArray1::from_slice(py, rows.as_flattened()).reshape([rows.len(), 4])
}
