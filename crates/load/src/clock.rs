//! The monotonic clock: stamps, and waiting for one.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// The stamp of now [ns].
#[inline]
pub(crate) fn now_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux and the pointer is valid: the call cannot fail.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    #[expect(clippy::cast_sign_loss, reason = "the clock begins at 0 and only grows")]
    let (seconds, rest) = (now.tv_sec() as u64, now.tv_nsec() as u64);
    seconds * 1_000_000_000 + rest
}

/// Sleeps until a stamp, or until a signal comes.
pub(crate) fn sleep_until(time_ns: u64) {
    let _ = sleep_or_signal(time_ns);
}

fn sleep_or_signal(time_ns: u64) -> Result<(), Errno> {
    let time = TimeSpec::from_duration(Duration::from_nanos(time_ns));
    clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time).map(|_| ())
}

/// Waits until a stamp: asleep until `spin_ns` before it, then spinning. Ends early when a signal asks.
#[inline]
pub(crate) fn wait_until(time_ns: u64, spin_ns: u64) {
    let wake_ns = time_ns.saturating_sub(spin_ns);
    while now_ns() < wake_ns {
        if sleep_or_signal(wake_ns).is_err() && crate::signal::is_asked_to_end() {
            return;
        }
    }
    while now_ns() < time_ns {
        std::hint::spin_loop();
    }
}

/// Lets timers of this thread end when they are due, not when it suits the kernel (usual slack: 50 us).
pub(crate) fn sharpen_timers() {
    // Refused nowhere; a coarse timer would show in the recorded send times.
    let _ = nix::sys::prctl::set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_never_ends_before_its_time() {
        for spin_ns in [0, 50_000, 10_000_000] {
            let due = now_ns() + 2_000_000;
            wait_until(due, spin_ns);
            assert!(now_ns() >= due);
        }
        let before = now_ns();
        wait_until(before, 50_000);
        sleep_until(before);
        assert!(now_ns() >= before);
    }
}
