use serde::{Deserialize, Serialize};

/// One measured value with where it came from.
///
/// A quantity that could not be measured has no value and says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantity {
    /// The value in the unit of its metric's name.
    pub value: Option<u64>,
    /// Mechanism that produced it, or would have.
    pub source: Source,
    /// Smallest step of the source in the same unit; 1 when exact.
    pub granularity: u64,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl Quantity {
    /// A value that was measured.
    #[must_use]
    pub const fn measured(value: u64, source: Source, granularity: u64) -> Self {
        Self { value: Some(value), source, granularity, missing: None }
    }

    /// A value this host could not give.
    #[must_use]
    pub fn missing(source: Source, reason: impl Into<String>) -> Self {
        Self { value: None, source, granularity: 1, missing: Some(reason.into()) }
    }
}

/// What was measured; the unit is part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// Beginning to end of the first process, as exactly as its source stamps them.
    WallNs,
    /// CPU time of the tree.
    CpuNs,
    /// Its user part (sampled where the kernel accounts by tick).
    CpuUserNs,
    /// Its system part (sampled where the kernel accounts by tick).
    CpuSystemNs,
    /// CPU time by `wait4`: reaped descendants, launcher's set-up of the child included.
    CpuRusageNs,
    /// CPU time by the cgroup.
    CpuCgroupNs,
    /// Peak memory of the tree.
    PeakMemoryBytes,
    /// Peak resident set of the first process (`VmHWM` or `ru_maxrss`, a floor).
    PeakResidentBytes,
    /// Context switches the tree asked for by blocking.
    VoluntarySwitches,
    /// Context switches forced upon the tree.
    InvoluntarySwitches,
    /// Moves between CPUs.
    Migrations,
    /// Page faults without I/O.
    MinorFaults,
    /// Page faults with I/O.
    MajorFaults,
    /// Bytes read from storage.
    ReadBytes,
    /// Bytes written to storage.
    WrittenBytes,
    /// Time runnable but not running: of a single thread, else the time in which some thread was.
    RunDelayNs,
    /// Time some task of the tree waited for a CPU (pressure stall information).
    CpuPressureNs,
    /// Time some task of the tree waited for memory.
    MemoryPressureNs,
    /// Time some task of the tree waited for I/O.
    IoPressureNs,
    /// Time held back by a bandwidth limit.
    ThrottledNs,
    /// Time the hypervisor took from the run's CPUs during the run.
    StealNs,
    /// Release of the gate to exec.
    LaunchNs,
    /// Exit to "nothing is left".
    ReapNs,
    /// Everything one iteration cost the launcher, set-up and clean-up included.
    TotalNs,
    /// Bytes the program wrote to standard output and error.
    OutputBytes,
}

/// Mechanism that produced a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Kernel events right before the first and right after the last instruction of a program
    /// (`sched_process_exec`, `sched_process_exit`), `CLOCK_MONOTONIC`.
    Tracepoint,
    /// Kernel records of exec and exit by a software perf event, `CLOCK_MONOTONIC`.
    PerfRecord,
    /// Stops at exec and exit by `ptrace`.
    Ptrace,
    /// A stamp in shared memory before `execve`, and the return of `waitid` in the keeper.
    SharedMemory,
    /// A counting software or hardware perf event.
    PerfCounter,
    /// cgroup version 2 file.
    Cgroup2,
    /// cgroup version 1 file.
    Cgroup1,
    /// `wait4`.
    Rusage,
    /// A file of procfs.
    Procfs,
    /// `CLOCK_MONOTONIC` in the launcher.
    MonotonicClock,
    /// Counted by the launcher itself.
    Launcher,
}
