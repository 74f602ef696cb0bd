//! What a simulation leaves; the layouts are those of `steelyard.studies.colocation.trial`.

use serde::Serialize;

/// One request; stamps in ns from the begin of the simulation, 0: not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// 0: usual, 1: long.
    pub kind: u32,
    /// CPU time it asks for.
    pub work_ns: u64,
    /// When it arrived.
    pub intended_ns: u64,
    /// When a worker began with it.
    pub started_ns: u64,
    /// When the worker was done.
    pub finished_ns: u64,
}

/// End of an iteration of a best-effort job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// Job, from 0.
    pub job: u32,
    /// Thread of the job, from 0.
    pub thread: u32,
    /// When it ended.
    pub end_ns: u64,
}

/// What has been used and waited so far, summed over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// When.
    pub time_ns: u64,
    /// Service: time on a CPU.
    pub service_cpu_ns: u64,
    /// Service: time runnable but not on a CPU.
    pub service_wait_ns: u64,
    /// Best-effort: time on a CPU.
    pub best_effort_cpu_ns: u64,
    /// Best-effort: time runnable but not on a CPU.
    pub best_effort_wait_ns: u64,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Events of the simulation: ticks, arrivals, completions, interrupts.
    pub events: u64,
    /// Decisions what a CPU executes next.
    pub scheduling_events: u64,
    /// Decisions that changed the thread.
    pub switches: u64,
    /// Timer ticks.
    pub ticks: u64,
    /// Threads woken.
    pub wake_ups: u64,
    /// Threads moved to another CPU.
    pub migrations: u64,
    /// Times a CPU looked for threads to take over, by the periodic balancer.
    pub balance_runs: u64,
    /// Threads that the periodic balancer moved.
    pub balance_moves: u64,
    /// Threads that a CPU took over instead of going idle.
    pub idle_moves: u64,
    /// Entry checks: a thread of the service woke, no CPU was idle, a CPU that executes best-effort work was looked for.
    pub entry_runs: u64,
    /// Entry checks that found one.
    pub entry_successes: u64,
    /// Exit checks: before best-effort work, a waiting thread of the service was looked for.
    pub exit_runs: u64,
    /// Exit checks that found one.
    pub exit_successes: u64,
    /// Decisions for a thread of the service while a best-effort thread waited on the same CPU; under the class, for one
    /// that had waited for this CPU.
    pub local_lc_picks: u64,
    /// Decisions for a best-effort thread.
    pub be_picks: u64,
    /// Times a CPU was made to look again, because a thread began to wait while that CPU decided.
    pub self_kicks: u64,
    /// Times the real-time share of a CPU was used up.
    pub throttled: u64,
}

/// How far the rule was broken: a thread of the service waited while best-effort work ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Strictness {
    /// Time in which it was.
    pub violation_ns: u64,
    /// Waits of threads of the service in which it was.
    pub violations: u64,
    /// Longest such time in one wait of one thread.
    pub longest_ns: u64,
}

/// How far work was not conserved: a thread waited while a CPU was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Conservation {
    /// Time in which it was not.
    pub idle_while_waiting_ns: u64,
    /// Longest such time in one wait of one thread.
    pub longest_ns: u64,
}
