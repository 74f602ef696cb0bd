//! What the launcher can be asked for.

use pyo3::prelude::*;
use steelyard_model::{COUNTER_ALIASES, COUNTER_NAMES};

/// Gives the names of the counters a run may ask for, aliases last.
#[pyfunction]
pub(crate) fn counter_names() -> Vec<&'static str> {
    COUNTER_NAMES.iter().chain(COUNTER_ALIASES.iter().map(|(alias, _)| alias)).copied().collect()
}
