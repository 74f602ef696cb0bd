use serde::{Deserialize, Serialize};

/// Where and with which priority a run executes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Placement {
    /// CPUs the run may use; `None` leaves the launcher's own set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// Memory nodes the run may allocate from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<u32>>,
    /// Scheduling class.
    pub policy: SchedulingPolicy,
    /// Give the run's cgroup the largest CPU weight the kernel knows (v1 `cpu.shares` 262144, v2
    /// `cpu.weight` 10000), so that a competitor on the same CPU cannot slow it. Measuring
    /// default. `nice` is not offered: with autogroup scheduling it does nothing.
    pub maximal_weight: bool,
    /// Address-space randomisation for this run: `None` keeps the host's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomise_addresses: Option<bool>,
}

/// Scheduling class of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "class")]
#[non_exhaustive]
pub enum SchedulingPolicy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`; needs a wall-time limit, since a spinning real-time task starves its host.
    Fifo {
        /// 1 (lowest) to 99.
        priority: u8,
    },
}
