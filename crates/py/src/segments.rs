//! Piecewise models of `steelyard-stats` over arrays.

#![allow(clippy::too_many_arguments, reason = "options are keyword-only on the Python side")]

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steelyard_stats::{NoiseScale, PieceKind, Plan, SegmentOptions};

use crate::models::raise;

/// Options of the search, as keyword arguments.
#[derive(FromPyObject)]
#[expect(clippy::struct_excessive_bools, reason = "kinds of piece are allowed independently")]
pub(crate) struct Options {
    break_penalty: f64,
    slope_penalty: f64,
    shortest: usize,
    proportional: bool,
    floor: f64,
    robust: bool,
    line: bool,
    power: bool,
    budget: usize,
}

impl From<&Options> for SegmentOptions {
    fn from(given: &Options) -> Self {
        Self {
            break_penalty: given.break_penalty,
            slope_penalty: given.slope_penalty,
            shortest: given.shortest,
            noise: if given.proportional { NoiseScale::Proportional } else { NoiseScale::Constant },
            floor: given.floor,
            robust: given.robust,
            line: given.line,
            power: given.power,
            budget: given.budget,
        }
    }
}

/// Fits a piecewise model; pieces come as (kind, first x, last x, points, base, slope).
#[pyfunction]
#[pyo3(signature = (x, y, options, scales = None))]
pub(crate) fn fit_segments<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    y: PyReadonlyArray1<'py, f64>,
    options: Options,
    scales: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (x, y) = (x.as_array().to_vec(), y.as_array().to_vec());
    let scales = scales.map(|each| each.as_array().to_vec()).unwrap_or_default();
    let options = SegmentOptions::from(&options);
    let fit = py
        .detach(|| steelyard_stats::fit_scaled_segments(&x, &y, &scales, &options))
        .map_err(|error| raise(&error))?;
    let pieces: Vec<_> = fit
        .pieces
        .iter()
        .map(|piece| {
            let kind = match piece.kind {
                PieceKind::Constant => "constant",
                PieceKind::Line => "line",
                PieceKind::Power => "power",
            };
            (kind, piece.x_range.0, piece.x_range.1, piece.points, piece.base, piece.slope)
        })
        .collect();
    let found = PyDict::new(py);
    found.set_item("pieces", pieces)?;
    found.set_item("cost", fit.cost)?;
    found.set_item("bound", fit.bound)?;
    found.set_item("sigma", fit.sigma)?;
    found.set_item("evaluations", fit.evaluations)?;
    Ok(found)
}

/// Bootstrap limits of breaks: the x surely left and the x surely right of each.
#[pyfunction]
#[pyo3(signature = (x, y, options, breaks, *, resamples, level, seed))]
pub(crate) fn break_intervals<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    y: PyReadonlyArray1<'py, f64>,
    options: Options,
    breaks: Vec<f64>,
    resamples: usize,
    level: f64,
    seed: u64,
) -> PyResult<Vec<(f64, f64)>> {
    let (x, y) = (x.as_array().to_vec(), y.as_array().to_vec());
    let options = SegmentOptions::from(&options);
    let plan = Plan { resamples, level, seed, cell: 0 };
    py.detach(|| steelyard_stats::break_intervals(&x, &y, &options, &breaks, &plan))
        .map_err(|error| raise(&error))
}
