//! Linear models of `steelyard-stats` over arrays.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steelyard_stats::{Intercept, LinearFit, StatsError, fit_linear};

import_exception!(steelyard.errors, AnalysisError);

pub(crate) fn raise(error: &StatsError) -> PyErr {
    AnalysisError::new_err(error.to_string())
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
    let columns: Vec<Vec<f64>> = columns.iter().map(|column| column.as_array().to_vec()).collect();
    let response = response.as_array().to_vec();
    let clusters = clusters.map(|labels| labels.as_array().to_vec());
    let constant = if intercept { Intercept::Fitted } else { Intercept::Zero };
    let fit = py
        .detach(|| {
            let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            fit_linear(&slices, &response, constant, clusters.as_deref())
        })
        .map_err(|error| raise(&error))?;
    described(py, fit)
}

fn described(py: Python<'_>, fit: LinearFit) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    let arrays = [
        ("coefficients", fit.coefficients),
        ("standard_errors", fit.standard_errors),
        ("hc3_errors", fit.hc3_errors),
        ("residuals", fit.residuals),
        ("leverage", fit.leverage),
        ("cook", fit.cook),
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
