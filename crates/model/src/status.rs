use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Exit code 0.
    Completed,
    /// Another exit code, by the program's own choice.
    NonzeroExit,
    /// Ended by a signal that was not ours.
    Signalled,
    /// Ended because it used its CPU time.
    CpuTimeout,
    /// Ended because its wall time was over.
    WallTimeout,
    /// A process of the tree was killed for memory.
    OutOfMemory,
    /// Ended by another limit; see [`RunOutcome::limit`](crate::RunOutcome::limit).
    LimitExceeded,
    /// Ended because the caller asked for it.
    Interrupted,
    /// The program never started, or measuring it failed; the message says why.
    LauncherFailed,
}

/// A remark on a run that stays in the data. Nothing is removed because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Flag {
    /// Waited for a CPU against its will for more than 1 % of its wall time.
    Preempted,
    /// Moved to another CPU.
    Migrated,
    /// The hypervisor took more than 1 % of its wall time.
    Stolen,
    /// Held back by a CPU bandwidth limit.
    Throttled,
    /// Waited for pages from storage while the host swapped.
    Swapped,
    /// Two sources of CPU time differ by more than 1 ms + 1 %.
    CpuSourcesDisagree,
    /// Stopped itself or was stopped by a signal while running.
    Stopped,
    /// Left processes behind when its first process ended; they were killed.
    LeftProcesses,
    /// A system call was refused by the filter.
    ForbiddenCall,
}
