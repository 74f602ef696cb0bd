use serde::{Deserialize, Serialize};

use crate::{HostRoot, KernelConfig};

/// Readings taken of each clock: enough for a stable minimum, below 1 ms in total for a vDSO clock.
const READINGS: u32 = 2_000;
/// Bound for a clock whose step is longer than its readings take [ns].
const STEP_BOUND_NS: u64 = 12_000_000;

/// How fine and how dear the clocks of this host are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC`, the clock of every stamp.
    pub monotonic: Option<Clock>,
    /// `CLOCK_PROCESS_CPUTIME_ID`, the exact CPU time of a process.
    pub process_cpu: Option<Clock>,
    /// User plus system time by `getrusage`.
    pub rusage: Option<Clock>,
    /// Source of the kernel's time (`tsc`, `kvm-clock`, ...).
    pub source: Option<String>,
    /// How the kernel splits CPU time into user and system.
    pub accounting: CpuAccounting,
    /// Length of the kernel's tick [ns], the step of a sampled split.
    pub tick_ns: Option<u64>,
    /// Unit of the CPU times in `/proc` [ns].
    pub user_tick_ns: u64,
}

/// One clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Smallest step seen between two readings [ns].
    pub granularity_ns: u64,
    /// Mean time one reading takes [ns].
    pub cost_ns: f64,
}

/// How the kernel knows whether CPU time was user or system time. The sum is exact in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CpuAccounting {
    /// Sampled at the tick: the split is an estimate.
    Tick,
    /// Taken at each border crossing.
    Exact,
    /// The kernel's configuration cannot be read.
    Unknown,
}

/// Measures the clocks; takes at most about 40 ms. Under a root that is not the running system
/// only what files say is given.
#[must_use]
pub fn measure_clocks(root: &HostRoot) -> Clocks {
    let config = KernelConfig::read(root);
    let live = root.is_system();
    Clocks {
        monotonic: live.then(|| measure(monotonic_ns)),
        process_cpu: live.then(|| measure(process_cpu_ns)),
        rusage: live.then(|| measure(rusage_ns)),
        source: root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        accounting: accounting(&config),
        tick_ns: tick_ns(&config, live),
        user_tick_ns: user_tick_ns(),
    }
}

fn accounting(config: &KernelConfig) -> CpuAccounting {
    let exact = ["VIRT_CPU_ACCOUNTING_GEN", "VIRT_CPU_ACCOUNTING_NATIVE"];
    match (config.has("TICK_CPU_ACCOUNTING"), exact.iter().any(|option| config.has(option) == Some(true))) {
        (_, true) => CpuAccounting::Exact,
        (Some(true), false) => CpuAccounting::Tick,
        _ => CpuAccounting::Unknown,
    }
}

fn tick_ns(config: &KernelConfig, live: bool) -> Option<u64> {
    if let Some(hertz) =
        config.value("HZ").and_then(|text| text.parse::<u64>().ok()).filter(|hertz| *hertz > 0)
    {
        return Some(1_000_000_000 / hertz);
    }
    // The coarse clock advances once per tick, and the kernel reports that step.
    live.then(|| nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE).ok().map(nanoseconds))?
}

fn measure(read: fn() -> u64) -> Clock {
    let begin = monotonic_ns();
    let mut last = read();
    let mut step = u64::MAX;
    let mut readings = 0u32;
    while readings < READINGS || (step == u64::MAX && monotonic_ns() - begin < STEP_BOUND_NS) {
        let now = read();
        if now > last {
            step = step.min(now - last);
            last = now;
        }
        readings += 1;
    }
    let start = monotonic_ns();
    for _ in 0..READINGS {
        std::hint::black_box(read());
    }
    #[expect(clippy::cast_precision_loss, reason = "a duration of milliseconds is exact in a double")]
    let cost_ns = (monotonic_ns() - start) as f64 / f64::from(READINGS);
    Clock { granularity_ns: if step == u64::MAX { STEP_BOUND_NS } else { step }, cost_ns }
}

fn nanoseconds(time: nix::sys::time::TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec()).unwrap_or(0))
}

pub(crate) fn monotonic_ns() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, nanoseconds)
}

fn process_cpu_ns() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, nanoseconds)
}

fn rusage_ns() -> u64 {
    let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF) else {
        return 0;
    };
    let total = usage.user_time() + usage.system_time();
    let seconds = u64::try_from(total.tv_sec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(total.tv_usec()).unwrap_or(0) * 1_000)
}

pub(crate) fn user_tick_ns() -> u64 {
    let hertz = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
    hertz
        .and_then(|hertz| u64::try_from(hertz).ok())
        .filter(|hertz| *hertz > 0)
        .map_or(10_000_000, |hertz| 1_000_000_000 / hertz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_the_running_system_are_measured() {
        let clocks = measure_clocks(&HostRoot::system());
        let monotonic = clocks.monotonic.unwrap();
        assert!(monotonic.granularity_ns >= 1 && monotonic.granularity_ns < 1_000_000);
        assert!(monotonic.cost_ns > 0.0);
        assert!(clocks.rusage.unwrap().granularity_ns >= 1_000);
        assert!(clocks.tick_ns.unwrap() >= 1_000_000);
    }

    #[test]
    fn a_recorded_host_gives_what_its_files_say() {
        let folder = crate::report::tests::tree(&[
            ("proc/sys/kernel/osrelease", "6.1"),
            ("boot/config-6.1", "CONFIG_HZ=1000\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n"),
        ]);
        let clocks = measure_clocks(&HostRoot::at(folder.path()));
        assert_eq!((clocks.tick_ns, clocks.accounting), (Some(1_000_000), CpuAccounting::Exact));
        assert!(clocks.monotonic.is_none());
    }
}
