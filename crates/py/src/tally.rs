//! Moments and quantiles of very many whole numbers, of `steelyard-stats`.

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;
use steelyard_stats::{Ranks, Tally};

use crate::stats::raise;

/// What one pass over values gives.
#[pyclass(module = "steelyard._native")]
#[derive(Default)]
pub(crate) struct CallTally(Tally);

/// The second pass: exact order statistics.
#[pyclass(module = "steelyard._native")]
pub(crate) struct CallRanks(Ranks);

/// Gives the values to work, without a copy where they lie next to each other.
pub(crate) fn with_values<N: Element + Copy + Sync, T: Send>(
    py: Python<'_>,
    values: &PyReadonlyArray1<'_, N>,
    work: impl FnOnce(&[N]) -> T + Send,
) -> T {
    let values = values.as_array();
    match values.as_slice() {
        Some(values) => py.detach(|| work(values)),
        None => work(&values.to_vec()),
    }
}

#[pymethods]
impl CallTally {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Takes values, from 0 to below 2^48.
    fn add(&mut self, py: Python<'_>, values: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        with_values(py, &values, |values| self.0.add(values)).map_err(raise)
    }

    /// Number of values.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// The mean.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The standard deviation with n - 1.
    #[getter]
    fn standard_deviation(&self) -> f64 {
        self.0.standard_deviation()
    }

    /// Smallest and largest value.
    #[getter]
    fn extremes(&self) -> Option<(u64, u64)> {
        self.0.extremes()
    }

    /// Prepares the second pass for ranks from 0 on.
    fn ranks(&self, wanted: Vec<u64>) -> CallRanks {
        CallRanks(self.0.ranks(&wanted))
    }
}

#[pymethods]
impl CallRanks {
    /// Takes the values of the first pass again.
    fn add(&mut self, py: Python<'_>, values: PyReadonlyArray1<'_, i64>) {
        with_values(py, &values, |values| self.0.add(values));
    }

    /// The wanted ranks with their values.
    fn values(&self) -> Vec<(u64, u64)> {
        self.0.values()
    }
}
