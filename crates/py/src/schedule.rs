//! The simulator of schedulers of `steelyard-sched`.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use steelyard_sched::{Config, Conservation, Counters, Simulation, Strictness};

/// A simulation of a service and best-effort jobs under one policy.
#[pyclass(module = "steelyard._native")]
pub(crate) struct ScheduleSimulation(Simulation);

#[derive(Serialize)]
struct Counted<'a> {
    counters: &'a Counters,
    strictness: &'a Strictness,
    conservation: &'a Conservation,
    parked_ns: u64,
}

fn columns<const WIDTH: usize>(
    py: Python<'_>,
    rows: impl Iterator<Item = [u64; WIDTH]>,
) -> PyResult<Bound<'_, PyArray2<u64>>> {
    let words: Vec<u64> = rows.flatten().collect();
    let count = words.len() / WIDTH;
    PyArray1::from_vec(py, words).reshape([count, WIDTH])
}

#[pymethods]
impl ScheduleSimulation {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let config: Config =
            serde_json::from_str(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Simulation::new(config).map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Gives the default configuration as JSON.
    #[staticmethod]
    fn default_config() -> PyResult<String> {
        serde_json::to_string(&Config::default()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Handles up to a number of events; says whether there is more to do.
    fn advance(&mut self, py: Python<'_>, events: u64) -> bool {
        py.detach(|| self.0.advance(events))
    }

    /// Time simulated so far [ns].
    #[getter]
    const fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    /// Requests: kind, intended, started, finished.
    fn requests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let row = |each: &steelyard_sched::Request| {
            [u64::from(each.kind), each.intended_ns, each.started_ns, each.finished_ns]
        };
        columns(py, self.0.requests().iter().map(row))
    }

    /// Iterations: job, thread, end.
    fn iterations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let row = |each: &steelyard_sched::Iteration| [each.job.into(), each.thread.into(), each.end_ns];
        columns(py, self.0.iterations().iter().map(row))
    }

    /// Samples: time, CPU and waiting time of the service, then of the best-effort jobs.
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let row = |each: &steelyard_sched::Sample| {
            let service = [each.time_ns, each.service_cpu_ns, each.service_wait_ns];
            [service[0], service[1], service[2], each.best_effort_cpu_ns, each.best_effort_wait_ns]
        };
        columns(py, self.0.samples().iter().map(row))
    }

    /// Gives counters, the time in which the rule was broken, and that in which jobs were parked, as JSON.
    fn counters(&self) -> PyResult<String> {
        let counted = Counted {
            counters: self.0.counters(),
            strictness: self.0.strictness(),
            conservation: self.0.conservation(),
            parked_ns: self.0.parked_ns(),
        };
        serde_json::to_string(&counted).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
