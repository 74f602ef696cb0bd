//! Noise laws of `steelyard-stats` over arrays.

#![allow(clippy::too_many_arguments, reason = "options are keyword-only on the Python side")]

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steelyard_stats::{CurveError, Law, LawFit, LawKind, NoiseSetting, Simulation};

use crate::models::raise;

const KINDS: [(&str, LawKind); 4] = [
    ("normal", LawKind::Normal),
    ("lognormal", LawKind::Lognormal),
    ("gamma", LawKind::Gamma),
    ("weibull", LawKind::Weibull),
];

fn name_of(kind: LawKind) -> &'static str {
    KINDS.iter().find(|entry| entry.1 == kind).map_or("", |entry| entry.0)
}

fn law_of(kind: &str, (shift, shape, scale): (f64, f64, f64)) -> PyResult<Law> {
    let found = KINDS.iter().find(|entry| entry.0 == kind);
    let (_, kind) = found.ok_or_else(|| PyValueError::new_err(format!("no law is called {kind}")))?;
    Ok(Law { kind: *kind, shift, shape, scale })
}

fn described<'py>(py: Python<'py>, fit: &LawFit) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("kind", name_of(fit.law.kind))?;
    found.set_item("parameters", (fit.law.shift, fit.law.shape, fit.law.scale))?;
    found.set_item("errors", (fit.errors[0], fit.errors[1], fit.errors[2]))?;
    found.set_item("lowest", fit.lowest)?;
    found.set_item("log_likelihood", fit.log_likelihood)?;
    found.set_item("anderson_darling", fit.fitness.0)?;
    found.set_item("p_value", fit.fitness.1)?;
    found.set_item("simulated", fit.simulated)?;
    found.set_item("distance", fit.distance)?;
    found.set_item("is_regular", fit.law.is_regular())?;
    Ok(found)
}

/// The error of a fitted curve: two columns, weights, and whether deviations are factors and values were cut.
#[derive(FromPyObject)]
pub(crate) struct Curve<'py> {
    first: PyReadonlyArray1<'py, f64>,
    second: PyReadonlyArray1<'py, f64>,
    weights: PyReadonlyArray1<'py, f64>,
    is_factor: bool,
    is_cut: bool,
}

impl From<&Curve<'_>> for CurveError {
    fn from(given: &Curve<'_>) -> Self {
        let (first, second) = (given.first.as_array(), given.second.as_array());
        Self {
            rows: first.iter().zip(second).map(|(&a, &b)| [a, b]).collect(),
            weights: given.weights.as_array().to_vec(),
            is_factor: given.is_factor,
            is_cut: given.is_cut,
        }
    }
}

/// Fits every noise law; gives them as dictionaries, with the number of distinct values.
#[pyfunction]
#[pyo3(signature = (values, *, lowest_shift, curve, samples, enough, seed))]
pub(crate) fn fit_noise<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    lowest_shift: Option<f64>,
    curve: Option<Curve<'py>>,
    samples: usize,
    enough: usize,
    seed: u64,
) -> PyResult<(Vec<Bound<'py, PyDict>>, usize)> {
    let values = values.as_array().to_vec();
    let plan = Simulation { samples, enough, seed };
    let setting = NoiseSetting { lowest_shift, curve: curve.as_ref().map(CurveError::from) };
    let fit =
        py.detach(|| steelyard_stats::fit_noise(&values, &setting, &plan)).map_err(|error| raise(&error))?;
    let laws = fit.laws.iter().map(|law| described(py, law)).collect::<PyResult<Vec<_>>>()?;
    Ok((laws, fit.distinct))
}

/// Looks for a generalised Pareto law of the largest values.
#[pyfunction]
#[pyo3(signature = (values, *, samples, enough, seed))]
pub(crate) fn pareto_tail<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    samples: usize,
    enough: usize,
    seed: u64,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let values = values.as_array().to_vec();
    let plan = Simulation { samples, enough, seed };
    let tail = py.detach(|| steelyard_stats::pareto_tail(&values, &plan)).map_err(|error| raise(&error))?;
    let Some(tail) = tail else { return Ok(None) };
    let found = PyDict::new(py);
    found.set_item("threshold", tail.threshold)?;
    found.set_item("exceedances", tail.exceedances)?;
    found.set_item("shape", tail.shape)?;
    found.set_item("scale", tail.scale)?;
    found.set_item("shape_limits", tail.shape_limits)?;
    found.set_item("errors", tail.errors)?;
    found.set_item("anderson_darling", tail.fitness.0)?;
    found.set_item("p_value", tail.fitness.1)?;
    found.set_item("holds", tail.holds)?;
    Ok(Some(found))
}

/// Values below which given shares of a law lie; `parameters` are shift, shape and scale.
#[pyfunction]
pub(crate) fn law_quantiles<'py>(
    py: Python<'py>,
    kind: &str,
    parameters: (f64, f64, f64),
    shares: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let law = law_of(kind, parameters)?;
    Ok(PyArray1::from_iter(py, shares.as_array().iter().map(|&p| law.quantile(p, 1.0 - p))))
}

/// Shares of a law below given values.
#[pyfunction]
pub(crate) fn law_shares<'py>(
    py: Python<'py>,
    kind: &str,
    parameters: (f64, f64, f64),
    values: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let law = law_of(kind, parameters)?;
    Ok(PyArray1::from_iter(py, values.as_array().iter().map(|&value| law.tails(value).0)))
}
