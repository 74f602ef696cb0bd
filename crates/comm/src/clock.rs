//! Stamps: readings of `CLOCK_MONOTONIC`, which the vDSO answers without a system call.

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Keeps the CPU until a time is reached.
#[inline]
pub(crate) fn wait_until_ns(end_ns: u64) {
    while now_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// What a stamp costs, and the smallest step between two.
#[derive(Debug, Clone, Copy)]
pub struct StampCost {
    /// Median over batches of the mean time of one stamp [ns].
    pub cost_ns: f64,
    /// Smallest difference of two stamps that differ [ns].
    pub resolution_ns: u64,
}

/// Measures stamps: 101 batches of 100, about 0.3 ms.
#[must_use]
pub fn measure_stamps() -> StampCost {
    const STAMPS: u32 = 100;
    let mut batches = [0.0_f64; 101];
    let mut resolution_ns = u64::MAX;
    for batch in &mut batches {
        let start = now_ns();
        let mut last = start;
        for _ in 0..STAMPS {
            let next = now_ns();
            if next > last {
                resolution_ns = resolution_ns.min(next - last);
            }
            last = next;
        }
        *batch = as_f64(last - start) / f64::from(STAMPS);
    }
    StampCost { cost_ns: median(&mut batches), resolution_ns }
}

/// The middle value of an odd number of values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A duration [ns] as a number with fraction; exact below 2^53 ns, which is 104 days.
#[expect(clippy::cast_precision_loss, reason = "durations here are below 2^53 ns")]
pub(crate) const fn as_f64(ns: u64) -> f64 {
    ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_do_not_go_back_and_cost_less_than_a_system_call() {
        let (first, second) = (now_ns(), now_ns());
        assert!(second >= first);
        let cost = measure_stamps();
        assert!(cost.cost_ns > 0.0 && cost.cost_ns < 5_000.0, "{cost:?}");
        assert!(cost.resolution_ns >= 1 && cost.resolution_ns < 20_000_000, "{cost:?}");
    }

    #[test]
    fn waiting_ends_after_the_time_asked_for() {
        let end = now_ns() + 2_000_000;
        wait_until_ns(end);
        assert!(now_ns() >= end);
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(&mut [5.0, 1.0, 3.0]).to_bits(), 3.0_f64.to_bits());
    }
}
