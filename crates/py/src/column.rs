//! Counts of a column that is read in parts, of `steelyard-stats`.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use steelyard_stats::Leading;

use crate::stats::contiguous;
use crate::tally::with_values;

/// Values whose leading bits are known, counted by the bits that follow.
#[pyclass(module = "steelyard._native")]
pub(crate) struct LeadingBits {
    leading: Leading,
    digit: u32,
    counts: Vec<i64>,
}

#[pymethods]
impl LeadingBits {
    #[new]
    fn new(bits: u32, known: Vec<u64>, digit: u32) -> Self {
        let leading = Leading::new(bits, known);
        let digit = digit.min(64_u32.saturating_sub(bits));
        let counts = vec![0; leading.known().len() << digit];
        Self { leading, digit, counts }
    }

    /// Counts values.
    fn add(&mut self, py: Python<'_>, values: PyReadonlyArray1<'_, f64>) {
        let Self { leading, digit, counts } = self;
        with_values(py, &values, |values| leading.count_next(values, *digit, counts));
    }

    /// Gives those of the values that begin so.
    fn among<'py>(&self, py: Python<'py>, values: PyReadonlyArray1<'py, f64>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, with_values(py, &values, |values| self.leading.among(values)))
    }

    /// A row for each known number, ascending; in it how often each number of the next bits follows.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        PyArray1::from_slice(py, &self.counts).reshape([self.leading.known().len(), 1 << self.digit])
    }
}

/// Values in ascending order.
#[pyfunction]
pub(crate) fn ascending<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_vec(py, with_values(py, &values, steelyard_stats::ascending))
}

/// The value whose order has these bits.
#[pyfunction]
pub(crate) fn value_of_key(key: u64) -> f64 {
    steelyard_stats::value_of_key(key)
}

/// How many values lie in each bin; the last one has its right edge.
#[pyfunction]
pub(crate) fn count_between<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    edges: PyReadonlyArray1<'py, f64>,
) -> Bound<'py, PyArray1<i64>> {
    let edges = contiguous(&edges);
    let counts = with_values(py, &values, |values| {
        let mut counts = vec![0; edges.len().saturating_sub(1)];
        steelyard_stats::count_between(values, &edges, &mut counts);
        counts
    });
    PyArray1::from_vec(py, counts)
}

/// Median of values in any order.
#[pyfunction]
pub(crate) fn middle(py: Python<'_>, values: PyReadonlyArray1<'_, f64>) -> f64 {
    with_values(py, &values, steelyard_stats::middle)
}
