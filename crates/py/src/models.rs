//! Linear models of `steelyard-stats` over arrays.

use std::borrow::Cow;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steelyard_stats::{Intercept, LinearFit, StatsError, fit_linear};

pub(crate) fn raise(error: &StatsError) -> PyErr {
    crate::stats::raise(error.clone())
}

/// The values themselves where they lie side by side, else a copy. Nobody may write them during the call.
fn values<'a, T: numpy::Element + Copy>(array: &'a PyReadonlyArray1<'_, T>) -> Cow<'a, [T]> {
    array.as_slice().map_or_else(|_| array.as_array().to_vec().into(), Cow::Borrowed)
}

const fn constant(intercept: bool) -> Intercept {
    if intercept { Intercept::Fitted } else { Intercept::Zero }
}

/// Fits a linear model; the result is a dictionary of arrays and numbers.
#[pyfunction]
#[pyo3(signature = (columns, response, *, intercept, clusters=None))]
pub(crate) fn linear_model<'py>(
    py: Python<'py>,
    columns: Vec<PyReadonlyArray1<'py, f64>>,
    response: PyReadonlyArray1<'py, f64>,
    intercept: bool,
    clusters: Option<PyReadonlyArray1<'py, i64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let columns: Vec<Cow<'_, [f64]>> = columns.iter().map(values).collect();
    let (response, clusters) = (values(&response), clusters.as_ref().map(values));
    let fit = py
        .detach(|| {
            let slices: Vec<&[f64]> = columns.iter().map(AsRef::as_ref).collect();
            fit_linear(&slices, &response, constant(intercept), clusters.as_deref())
        })
        .map_err(|error| raise(&error))?;
    described(py, fit)
}

/// Residual, leverage and Cook's distance of each observation, and the sum of squared residuals.
#[pyfunction]
#[pyo3(signature = (columns, response, *, intercept))]
pub(crate) fn linear_rows<'py>(
    py: Python<'py>,
    columns: Vec<PyReadonlyArray1<'py, f64>>,
    response: PyReadonlyArray1<'py, f64>,
    intercept: bool,
) -> PyResult<(Array<'py>, Array<'py>, Array<'py>, f64)> {
    let columns: Vec<Cow<'_, [f64]>> = columns.iter().map(values).collect();
    let response = values(&response);
    let rows = py
        .detach(|| {
            let slices: Vec<&[f64]> = columns.iter().map(AsRef::as_ref).collect();
            steelyard_stats::linear_rows(&slices, &response, constant(intercept))
        })
        .map_err(|error| raise(&error))?;
    let array = |values| PyArray1::from_vec(py, values);
    Ok((array(rows.residuals), array(rows.leverage), array(rows.cook), rows.residual_sum))
}

type Array<'py> = Bound<'py, PyArray1<f64>>;

fn described(py: Python<'_>, fit: LinearFit) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    let arrays = [
        ("coefficients", fit.coefficients),
        ("standard_errors", fit.standard_errors),
        ("hc3_errors", fit.hc3_errors),
        ("residual_quartiles", fit.residual_quartiles.to_vec()),
    ];
    for (name, values) in arrays {
        found.set_item(name, PyArray1::from_vec(py, values))?;
    }
    found.set_item("cluster_errors", fit.cluster_errors.map(|errors| PyArray1::from_vec(py, errors)))?;
    found.set_item("sigma", fit.sigma)?;
    found.set_item("residual_df", fit.residual_df)?;
    found.set_item("rank", fit.rank)?;
    found.set_item("residual_sum", fit.residual_sum)?;
    found.set_item("r_squared", fit.r_squared)?;
    found.set_item("adjusted_r_squared", fit.adjusted_r_squared)?;
    found.set_item("f_statistic", fit.f_statistic)?;
    found.set_item("fitted_square", fit.fitted_square)?;
    Ok(found)
}

/// Two-sided tail probability of Student's t.
#[pyfunction]
pub(crate) fn student_two_sided(t: f64, df: f64) -> f64 {
    steelyard_stats::student_two_sided(t, df)
}

/// Upper tail probability of F.
#[pyfunction]
pub(crate) fn f_upper(f: f64, numerator: f64, denominator: f64) -> f64 {
    steelyard_stats::f_upper(f, numerator, denominator)
}
