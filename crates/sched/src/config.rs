//! What is simulated.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::constant::{CLASS_SLICE_NS, SLICE_NS, TICK_NS};
use crate::timeline::CPU_BITS;

/// How best-effort jobs and the service are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// No best-effort jobs at all.
    None,
    /// Best-effort jobs at nice 19.
    Nice,
    /// Control groups with weights, 10000 to 1 by default.
    Weights,
    /// Best-effort jobs in `SCHED_IDLE`.
    Idle,
    /// Best-effort jobs in a control group with `cpu.idle`.
    CpuIdle,
    /// The best-effort class: local, entry and exit check.
    Be,
    /// The service in `SCHED_FIFO`.
    Fifo,
}

/// Checks of the best-effort class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "three checks, each on or off")]
pub struct Checks {
    /// The next pick on a CPU is never best-effort while a thread of the service can execute there.
    pub local: bool,
    /// A thread of the service that wakes interrupts best-effort work on another CPU, if no CPU is idle.
    pub entry: bool,
    /// Before best-effort work, a waiting thread of the service is taken from the CPU that has most of them.
    pub exit: bool,
}

/// How the work of requests of one kind is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkLaw {
    /// All the same.
    Constant,
    /// Exponential, with the same mean.
    Exponential,
}

/// The service and its clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Worker threads.
    pub threads: u32,
    /// A thread of its own reads requests and wakes workers, as in the service of `crates/load`; else nobody does, and a
    /// worker is woken as soon as a request arrives.
    pub has_reader: bool,
    /// Work of a usual request, on average.
    pub work_ns: u64,
    /// How the work of each request is drawn.
    pub law: WorkLaw,
    /// Share of long requests, 0 to 1.
    pub long_share: f64,
    /// Work of a long request over that of a usual one, at least 1.
    pub long_factor: f64,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Poisson arrivals; else at equal distances.
    pub is_poisson: bool,
}

/// The best-effort jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestEffort {
    /// Jobs.
    pub jobs: u32,
    /// Threads of each.
    pub threads: u32,
    /// Work of an iteration.
    pub iteration_ns: u64,
}

/// When what happens, from the begin of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Best-effort jobs start.
    pub best_effort_start_ns: u64,
    /// Best-effort jobs stop.
    pub best_effort_stop_ns: u64,
    /// The last request arrives before.
    pub client_end_ns: u64,
    /// The simulation ends, even if requests are unanswered.
    pub limit_ns: u64,
}

/// What switching costs; properties of hardware, not of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// From the decision to another thread until that one works.
    pub switch_ns: u64,
    /// Added when the thread worked on another CPU before: what its caches lack.
    pub migration_ns: u64,
    /// From the wish that another CPU decides anew until it does.
    pub interrupt_ns: u64,
    /// For the service's reader to read a request and to wake a worker.
    pub read_ns: u64,
}

/// A simulation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of arrivals and kinds of requests.
    pub seed: u64,
    /// CPUs that service and jobs share, 1 to 4096.
    pub cores: u32,
    /// CPUs that share a last-level cache: wake-ups look for idle CPUs among these.
    pub cache_cores: u32,
    /// Further CPUs behind each cache that stay idle because service and jobs may not use them; Linux counts them
    /// when it judges how full the machine is, and the class when it judges how crowded the service is.
    pub unused_cores: u32,
    /// Policy.
    pub policy: Policy,
    /// Checks of the best-effort class; ignored under other policies.
    pub checks: Checks,
    /// `cpu.weight` of the service's group, 1 to 10000; used by [`Policy::Weights`].
    pub service_weight: u32,
    /// `cpu.weight` of the jobs' group, 1 to 10000; used by [`Policy::Weights`].
    pub best_effort_weight: u32,
    /// Service and clients.
    pub service: Service,
    /// Jobs.
    pub best_effort: BestEffort,
    /// Phases.
    pub phases: Phases,
    /// Costs.
    pub costs: Costs,
    /// Slice of a fair thread.
    pub slice_ns: u64,
    /// Turn of a thread of the service under the best-effort class.
    pub class_slice_ns: u64,
    /// Time between timer ticks.
    pub tick_ns: u64,
}

impl Default for Config {
    /// The source's experiment: 4 CPUs at 85 %, two jobs from 11 s to 30 s.
    fn default() -> Self {
        let seconds = |s: u64| s * 1_000_000_000;
        Self {
            seed: 1,
            cores: 4,
            cache_cores: 4,
            unused_cores: 4,
            policy: Policy::Be,
            checks: Checks { local: true, entry: true, exit: true },
            service_weight: 10_000,
            best_effort_weight: 1,
            service: Service {
                threads: 16,
                has_reader: false,
                work_ns: 6_000_000,
                law: WorkLaw::Constant,
                long_share: 0.0,
                long_factor: 1.0,
                rate_per_s: 0.85 * 4.0 / 0.006,
                is_poisson: true,
            },
            best_effort: BestEffort { jobs: 2, threads: 1, iteration_ns: 5_000_000 },
            phases: Phases {
                best_effort_start_ns: seconds(11),
                best_effort_stop_ns: seconds(30),
                client_end_ns: seconds(40),
                limit_ns: seconds(70),
            },
            costs: Costs { switch_ns: 2_000, migration_ns: 10_000, interrupt_ns: 1_000, read_ns: 5_000 },
            slice_ns: SLICE_NS,
            class_slice_ns: CLASS_SLICE_NS,
            tick_ns: TICK_NS,
        }
    }
}

/// A value that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[error("{name} is {value}; allowed: {allowed}")]
pub struct ConfigError {
    /// Which value.
    pub name: &'static str,
    /// What was given.
    pub value: f64,
    /// What may be given.
    pub allowed: &'static str,
}

#[expect(clippy::cast_precision_loss, reason = "shown to people only")]
fn within(
    name: &'static str,
    value: u64,
    (low, high): (u64, u64),
    allowed: &'static str,
) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError { name, value: value as f64, allowed })
    }
}

impl Config {
    /// Looks at every value.
    ///
    /// # Errors
    /// For the first value out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        const LATEST_NS: u64 = 1 << (63 - CPU_BITS);
        within("cores", self.cores.into(), (1, 1 << CPU_BITS), "1 to 4096")?;
        within("cache_cores", self.cache_cores.into(), (1, 1 << CPU_BITS), "1 to 4096")?;
        within("unused_cores", self.unused_cores.into(), (0, 1 << CPU_BITS), "0 to 4096")?;
        within("service_weight", self.service_weight.into(), (1, 10_000), "1 to 10000")?;
        within("best_effort_weight", self.best_effort_weight.into(), (1, 10_000), "1 to 10000")?;
        within("threads", self.service.threads.into(), (1, 1 << 20), "1 to 1048576")?;
        within("work_ns", self.service.work_ns, (1_000, 1 << 40), "1000 ns to 18 min")?;
        within("iteration_ns", self.best_effort.iteration_ns, (1_000, 1 << 40), "1000 ns to 18 min")?;
        let jobs = u64::from(self.best_effort.jobs) * u64::from(self.best_effort.threads);
        within("best-effort threads", jobs, (0, 1 << 20), "0 to 1048576")?;
        within("slice_ns", self.slice_ns, (10_000, 1 << 30), "10 us to 1 s")?;
        within("class_slice_ns", self.class_slice_ns, (10_000, 1 << 40), "10 us to 18 min")?;
        within("tick_ns", self.tick_ns, (10_000, 1 << 30), "10 us to 1 s")?;
        within("limit_ns", self.phases.limit_ns, (1, LATEST_NS), "1 ns to 26 days")?;
        self.check_shares()
    }

    fn check_shares(&self) -> Result<(), ConfigError> {
        let Service { rate_per_s, long_share, long_factor, .. } = self.service;
        if !(rate_per_s > 0.0 && rate_per_s <= 1e8) {
            let allowed = "above 0, up to 100 million";
            return Err(ConfigError { name: "rate_per_s", value: rate_per_s, allowed });
        }
        if !(0.0..=1.0).contains(&long_share) {
            return Err(ConfigError { name: "long_share", value: long_share, allowed: "0 to 1" });
        }
        if !(1.0..=1e4).contains(&long_factor) {
            return Err(ConfigError { name: "long_factor", value: long_factor, allowed: "1 to 10000" });
        }
        Ok(())
    }
}
