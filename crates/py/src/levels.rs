//! Bindings of changes of level in a history.

#![allow(clippy::too_many_arguments, reason = "options are keyword-only on the Python side")]

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use steelyard_stats::{LevelChange, Results, StatsError};

use crate::stats::{contiguous, raise};

type Found = (f64, usize, (usize, usize), (f64, f64, f64), f64, f64, f64);

fn find(
    py: Python<'_>,
    arrays: [PyReadonlyArray1<'_, f64>; 3],
    largest: f64,
    find: fn(Results<'_>, f64) -> Result<LevelChange, StatsError>,
) -> PyResult<Found> {
    let [values, runs, squares] = [&arrays[0], &arrays[1], &arrays[2]].map(contiguous);
    let found = py
        .detach(|| find(Results { values: &values, runs: &runs, squares: &squares }, largest))
        .map_err(raise)?;
    let effect = (found.effect.middle, found.effect.low, found.effect.high);
    Ok((
        found.evidence,
        found.position,
        found.places,
        effect,
        found.autocorrelation,
        found.between,
        found.noise,
    ))
}

/// Change of level: log evidence, place, range of places, size with limits, autocorrelation, share between, noise.
#[pyfunction]
pub(crate) fn level_change(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    runs: PyReadonlyArray1<'_, f64>,
    squares: PyReadonlyArray1<'_, f64>,
    largest: f64,
) -> PyResult<Found> {
    find(py, [values, runs, squares], largest, steelyard_stats::level_change)
}

/// Change that the newest one or two results alone would show, as `level_change` gives it.
#[pyfunction]
pub(crate) fn newest_change(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    runs: PyReadonlyArray1<'_, f64>,
    squares: PyReadonlyArray1<'_, f64>,
    largest: f64,
) -> PyResult<Found> {
    find(py, [values, runs, squares], largest, steelyard_stats::newest_change)
}

/// Log evidence of a rise (or fall) at each look at a growing history.
#[pyfunction]
#[pyo3(signature = (values, runs, squares, largest, *, first, is_downward=false))]
pub(crate) fn level_looks<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    runs: PyReadonlyArray1<'py, f64>,
    squares: PyReadonlyArray1<'py, f64>,
    largest: f64,
    first: usize,
    is_downward: bool,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (values, runs, squares) = (contiguous(&values), contiguous(&runs), contiguous(&squares));
    let found = py
        .detach(|| {
            let results = Results { values: &values, runs: &runs, squares: &squares };
            steelyard_stats::level_looks(results, largest, first, is_downward)
        })
        .map_err(raise)?;
    Ok(PyArray1::from_vec(py, found))
}
