//! What is known of a run that was executed, before it is a record.

use nix::sys::wait::WaitStatus;
use steelyard_host::cgroup::Readings;
use steelyard_model::Source;

use super::stamps::Interval;
use crate::shared_page::SetUpUsage;

/// All of it.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) status: WaitStatus,
    pub(super) interval: Interval,
    pub(super) stamps: Source,
    pub(super) usage: libc::rusage,
    pub(super) set_up: SetUpUsage,
    /// From the child's call of `execve` to the start that the kernel stamped.
    pub(super) call_ns: Option<u64>,
    pub(super) readings: Readings,
    pub(super) run_delay_ns: Option<u64>,
    /// How much of that came after the program's end.
    pub(super) waited_after_end_ns: u64,
    /// Pages that the host swapped meanwhile; `None` where nothing is swapped.
    pub(super) swapped_pages: Option<u64>,
    pub(super) steal_ns: Option<u64>,
    pub(super) steal_step_ns: u64,
    pub(super) tick_ns: u64,
    pub(super) nothing_left_ns: u64,
    pub(super) has_left: bool,
    /// CPUs that the run may use.
    pub(super) cpus: usize,
    pub(super) has_refusals: bool,
    pub(super) cgroup: &'static str,
}

pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn time_ns(time: libc::timeval) -> u64 {
    count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000
}
