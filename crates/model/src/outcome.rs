use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Flag, LimitKind, Metric, Quantity, RunStatus, Source};

/// Schema name of [`RunOutcome`].
pub const OUTCOME_SCHEMA: &str = "steelyard/run-outcome/1";

/// What one launch of a [`RunSpec`](crate::RunSpec) did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// [`OUTCOME_SCHEMA`].
    pub schema: String,
    /// [`RunSpec::id`](crate::RunSpec::id).
    pub id: String,
    /// Counted from [`RunSpec::first_iteration`](crate::RunSpec::first_iteration).
    pub iteration: u32,
    /// How it ended.
    pub status: RunStatus,
    /// Exit code, when the program chose one.
    pub exit_code: Option<i32>,
    /// Signal that ended the first process.
    pub signal: Option<i32>,
    /// Limit that ended it.
    pub limit: Option<LimitKind>,
    /// What the launcher has to say, for `launcher_failed` always.
    pub message: Option<String>,
    /// exec, `CLOCK_MONOTONIC` [ns].
    pub start_ns: Option<u64>,
    /// exit, `CLOCK_MONOTONIC` [ns].
    pub end_ns: Option<u64>,
    /// exec in UTC, ns since 1970.
    pub start_utc_ns: Option<u64>,
    /// Everything measured, by metric.
    pub quantities: BTreeMap<Metric, Quantity>,
    /// Extra counters by name; a value that had to be scaled for multiplexing is missing.
    pub counters: BTreeMap<String, Quantity>,
    /// What the program said of itself on `STEELYARD_METRICS_FD`.
    pub own: Vec<OwnMeasurement>,
    /// Standard output, if captured.
    pub standard_output: Option<CapturedStream>,
    /// Standard error, if captured.
    pub standard_error: Option<CapturedStream>,
    /// Remarks.
    pub flags: Vec<Flag>,
    /// How this host did it.
    pub mechanism: Mechanism,
}

/// Which mechanisms served a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mechanism {
    /// `v2`, `hybrid`, `v1` or `none`.
    pub cgroup: String,
    /// Source of the start and end stamps.
    pub stamps: Source,
    /// `bare` or `sandbox`.
    pub isolation: String,
    /// Parts of the isolation that this host could not give, each with the reason.
    pub degraded: Vec<String>,
}

/// One line of a program's own report: `name value unit [iteration [phase]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnMeasurement {
    /// Metric name, as the program says it (`cpu`, `wall`, ...).
    pub metric: String,
    /// Value.
    pub value: f64,
    /// Unit (`ns`, `s`, `count`, ...).
    pub unit: String,
    /// Timed section inside this launch, from 1.
    pub iteration: u32,
    /// Phase.
    pub phase: Phase,
}

/// What a timed section is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Kept, but not part of the claims.
    Warmup,
    /// Part of the claims.
    #[default]
    Measure,
}

/// The first bytes of an output stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedStream {
    /// Text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Bytes the program wrote in total.
    pub total_bytes: u64,
    /// Whether text is shorter than what was written.
    pub truncated: bool,
}

impl RunOutcome {
    /// The value of a metric, if it was measured.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<u64> {
        self.quantities.get(&metric).and_then(|quantity| quantity.value)
    }
}
