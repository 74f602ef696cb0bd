//! What this machine is and can do, as JSON; `steelyard.run.machine.host` gives it types.

use pyo3::import_exception;
use pyo3::prelude::*;
use serde::Serialize;
use steelyard_host::{
    HostError, HostRoot, read_activity, read_fingerprint, read_processes, read_report, read_topology,
};

import_exception!(steelyard.errors, CapabilityError);

/// Examines the host under `root` (`/` for this one) and gives `steelyard/host/1` as JSON.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
pub(crate) fn host_report(py: Python<'_>, root: &str) -> PyResult<String> {
    answer(py, root, read_report)
}

/// Gives the topology under `root` as JSON.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
pub(crate) fn host_topology(py: Python<'_>, root: &str) -> PyResult<String> {
    answer(py, root, read_topology)
}

/// Gives the counters of CPU time, pressure, swap and throttling under `root` as JSON.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
pub(crate) fn host_activity(py: Python<'_>, root: &str) -> PyResult<String> {
    answer(py, root, read_activity)
}

/// Gives the fingerprint under `root` as JSON.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
pub(crate) fn host_fingerprint(py: Python<'_>, root: &str) -> PyResult<String> {
    answer(py, root, |root| Ok(read_fingerprint(root)))
}

/// Gives the processes under `root` with their CPU time as a JSON list.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
pub(crate) fn host_processes(py: Python<'_>, root: &str) -> PyResult<String> {
    answer(py, root, |root| Ok(read_processes(root)))
}

fn answer<T: Serialize>(
    py: Python<'_>,
    root: &str,
    read: impl FnOnce(&HostRoot) -> Result<T, HostError> + Send,
) -> PyResult<String> {
    py.detach(|| {
        let root = HostRoot::at(root);
        let found = read(&root).map_err(|error| CapabilityError::new_err(error.to_string()))?;
        serde_json::to_string(&found).map_err(|error| CapabilityError::new_err(error.to_string()))
    })
}
