//! Python bindings: `steelyard._native`.

#![allow(clippy::needless_pass_by_value, reason = "arguments that come from Python are owned by design")]

use pyo3::prelude::*;

mod column;
mod host;
mod interval;
mod launch;
mod levels;
mod lines;
mod models;
mod noise;
mod schedule;
mod segments;
mod splits;
mod stats;
mod tally;

/// Native kernels of Steelyard; private, the documented interface is the Python package.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::column::{LeadingBits, ascending, count_between, middle, value_of_key};

    #[pymodule_export]
    use crate::host::{host_activity, host_fingerprint, host_processes, host_report, host_topology};

    #[pymodule_export]
    use crate::launch::counter_names;

    #[pymodule_export]
    use crate::lines::json_columns;

    #[pymodule_export]
    use crate::models::{f_upper, linear_model, linear_rows, student_two_sided};

    #[pymodule_export]
    use crate::noise::{fit_noise, law_quantiles, law_shares, pareto_tail};

    #[pymodule_export]
    use crate::schedule::ScheduleSimulation;

    #[pymodule_export]
    use crate::segments::{break_intervals, fit_segments};

    #[pymodule_export]
    use crate::tally::{CallRanks, CallTally};

    #[pymodule_export]
    use crate::splits::{measure_split, simulated_splits};

    #[pymodule_export]
    use crate::levels::{level_change, level_looks, newest_change};

    #[pymodule_export]
    use crate::stats::{
        autocorrelation, change_points, cluster_bootstrap, convex_corners, dependence, deviation_bootstrap,
        effective_size, exact_sum, kolmogorov_smirnov, moment_bootstrap, noise_scale, quantile,
        quantile_bootstrap, standard_deviation,
    };

    #[pymodule_export]
    use crate::interval::{
        block_length, bootstrap, contrast_bootstrap, order_interval, permutation_test, shift_interval,
    };
}
