//! A specification that is being executed.

use steelyard_model::{Isolation, RunSpec};

use super::armed::Armed;
use super::stamps::SharedWatch;
use crate::error::LaunchError;
use crate::perf::{event_names, find_event};
use crate::scheduling::allowed_cpus;

/// A specification that was prepared, with what is the same for all its iterations.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) spec: RunSpec,
    pub(super) degraded: Vec<String>,
    /// That its runs may use.
    pub(super) cpus: Vec<u32>,
    /// Sees every run begin and end.
    pub(super) watch: SharedWatch,
    /// The iteration that waits at its gate.
    pub(super) armed: Option<Armed>,
}

/// Refuses what no host can execute; answers the specification that is executed.
pub(super) fn checked(spec: &RunSpec) -> Result<RunSpec, LaunchError> {
    spec.validate()?;
    check_counters(spec)?;
    Ok(bounded(spec))
}

fn check_counters(spec: &RunSpec) -> Result<(), LaunchError> {
    match spec.counters.iter().find(|name| find_event(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            Err(LaunchError::Name { field: "counters", found: name.clone(), allowed: event_names() })
        }
    }
}

/// Processes and threads of a sandboxed run that is given no limit of them: so many can be ended in time, and
/// programs that start some threads for each CPU have enough.
const LEAST_BOUND: u64 = 64;
const BOUND_PER_CPU: u64 = 4;

/// The specification with the limit that a program nobody vouches for has in any case.
fn bounded(spec: &RunSpec) -> RunSpec {
    let mut bounded = spec.clone();
    if matches!(spec.isolation, Isolation::Sandbox(_)) {
        let bound = LEAST_BOUND.max(BOUND_PER_CPU * allowed_cpus().len() as u64);
        bounded.limits.process_count.get_or_insert(bound);
    }
    bounded
}
