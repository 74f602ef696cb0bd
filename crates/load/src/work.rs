//! Fixed work: a loop of a given length, never of a given time.

use std::hint::black_box;

use crate::clock::now_ns;

/// Executes the work of one request: `iterations` steps, each depending on the one before.
///
/// The step is one of the 64-bit congruential generator of Knuth (MMIX) and a shift, so that a
/// compiler can neither shorten nor vectorise it. The result depends on start and length alone.
///
/// # Examples
///
/// ```
/// use steelyard_load::work;
///
/// assert_eq!(work(7, 1000), work(7, 1000));
/// assert_ne!(work(7, 1000), work(7, 1001));
/// ```
#[must_use]
#[inline(never)]
pub fn work(start: u64, iterations: u64) -> u64 {
    let mut state = black_box(start);
    for _ in 0..iterations {
        // SOURCE: Knuth, The Art of Computer Programming 2, 3.3.4, table 1, line 26.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^= state >> 29;
    }
    black_box(state)
}

/// How long a loop is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Length of the loop.
    pub iterations: u64,
    /// How long it takes alone: the shortest of several times [ns].
    pub work_ns: u64,
    /// How often it was timed.
    pub attempts: u32,
}

/// SOURCE: own choice; the shortest of 40 times of 0.2 ms is stable to a few per mille on a busy machine.
const SHORT_ATTEMPTS: u32 = 40;
const SHORT_NS: u64 = 200_000;
const LONG_ATTEMPTS: u32 = 10;

/// Finds the loop that takes `work_us` alone on the CPU that this is called on.
///
/// Disturbances only ever add time, so the shortest of many attempts counts.
#[must_use]
pub fn calibrate(work_us: u64) -> Calibration {
    let mut probe = 1024;
    while shortest_ns(probe, 3) < SHORT_NS && probe < 1 << 32 {
        probe *= 2;
    }
    let probe_ns = shortest_ns(probe, SHORT_ATTEMPTS).max(1);
    let wanted = u128::from(work_us) * 1000 * u128::from(probe) / u128::from(probe_ns);
    measure(u64::try_from(wanted).unwrap_or(u64::MAX).max(1))
}

/// Times a loop of a given length.
#[must_use]
pub fn measure(iterations: u64) -> Calibration {
    Calibration { iterations, work_ns: shortest_ns(iterations, LONG_ATTEMPTS), attempts: LONG_ATTEMPTS }
}

fn shortest_ns(iterations: u64, attempts: u32) -> u64 {
    let time = |_| {
        let start = now_ns();
        black_box(work(start, iterations));
        now_ns() - start
    };
    (0..attempts).map(time).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_same_everywhere() {
        // By hand: one step from 0 gives the increment, and its shift.
        let first = 1_442_695_040_888_963_407_u64;
        assert_eq!(work(0, 0), 0);
        assert_eq!(work(0, 1), first ^ (first >> 29));
    }

    #[test]
    fn a_calibrated_loop_takes_about_as_long_as_asked() {
        let found = calibrate(2000);
        // The machine may be busy and change its speed meanwhile: a factor, not a percentage.
        assert!((1_000_000..8_000_000).contains(&found.work_ns), "{found:?}");
        assert!(found.iterations > 10_000, "{found:?}");
        assert_eq!(calibrate(0).iterations, 1);
    }
}
