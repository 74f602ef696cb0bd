//! Limits of time.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::error::{During, LaunchError};

/// Shortest time between two looks at the CPU time: bounds by how much a run can overdraw it.
const SHORTEST_LOOK: Duration = Duration::from_micros(500);

/// One timer, made once and armed per run.
#[derive(Debug)]
pub(super) struct Timer(TimerFd);

impl Timer {
    pub(super) fn new() -> Result<Self, LaunchError> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map(Self).during("create a timer")
    }

    pub(super) fn arm(&self, after: Duration) -> Result<(), LaunchError> {
        // Zero would disarm it.
        let after = after.max(Duration::from_nanos(1));
        self.0.set(Expiration::OneShot(after.into()), TimerSetTimeFlags::empty()).during("set a timer")
    }

    pub(super) fn disarm(&self) -> Result<(), LaunchError> {
        self.0.unset().during("stop a timer")
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// When to look at the CPU time again: a tree on `cpu_count` CPUs cannot use `rest_ns` earlier.
pub(super) fn next_look(rest_ns: u64, cpu_count: usize) -> Duration {
    Duration::from_nanos(rest_ns / cpu_count.max(1) as u64).max(SHORTEST_LOOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_closer_as_the_limit_does() {
        assert_eq!(next_look(1_000_000_000, 2), Duration::from_millis(500));
        assert_eq!(next_look(100_000_000, 1), Duration::from_millis(100));
        assert_eq!(next_look(0, 1), SHORTEST_LOOK);
    }
}
