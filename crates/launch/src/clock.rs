//! Clocks in whole nanoseconds.

use nix::time::{ClockId, clock_getres, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

fn nanoseconds(time: nix::sys::time::TimeSpec) -> u64 {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec()) * NS_PER_S + part(time.tv_nsec())
}

fn now(clock: ClockId) -> u64 {
    // These clocks exist on every kernel that can execute this program.
    clock_gettime(clock).map_or(0, nanoseconds)
}

/// `CLOCK_MONOTONIC` [ns].
#[must_use]
pub fn monotonic_ns() -> u64 {
    now(ClockId::CLOCK_MONOTONIC)
}

/// CPU time of this process so far [ns].
pub(crate) fn own_cpu_ns() -> u64 {
    now(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// UTC [ns since 1970].
#[must_use]
pub fn utc_ns() -> u64 {
    now(ClockId::CLOCK_REALTIME)
}

/// The kernel's tick, by which CPU time is split into user and system [ns].
pub(crate) fn tick_ns() -> u64 {
    // The coarse clock steps by one tick, whatever the kernel was configured with.
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(10_000_000, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
        assert!(utc_ns() > 1_600_000_000 * NS_PER_S);
    }

    #[test]
    fn the_tick_is_between_one_and_ten_milliseconds() {
        assert!((1_000_000..=10_000_000).contains(&tick_ns()));
    }
}
