//! Threads that contend for one lock.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use steelyard_work::Times;

use crate::join::join;
use crate::lock::with_lock;
use crate::timer::StopFlag;
use crate::{Lock, LockKind, Padded, fingerprint};

/// What threads do while they hold the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Increment a counter: almost nothing, so the lock is all there is.
    Increment,
    /// Sleep: whoever waits meanwhile should leave the core to others.
    Sleep(Duration),
}

/// What a contest counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// Sections that each thread completed.
    pub by_thread: Vec<u64>,
    /// Its length, and the CPU time of all threads.
    pub times: Times,
}

impl Contest {
    /// Sections of all threads.
    #[must_use]
    pub fn sections(&self) -> u64 {
        self.by_thread.iter().sum()
    }

    /// Sections per second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
    pub fn rate_per_s(&self) -> f64 {
        self.sections() as f64 * 1e9 / self.times.wall_ns as f64
    }

    /// Standard deviation of the threads' sections over their mean: 0 is fair. Divided by the number
    /// of threads, not one less: these threads are all there are.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn unfairness(&self) -> f64 {
        let count = self.by_thread.len() as f64;
        let mean = self.sections() as f64 / count;
        if mean == 0.0 {
            return 0.0;
        }
        let squares: f64 = self.by_thread.iter().map(|&own| (own as f64 - mean).powi(2)).sum();
        (squares / count).sqrt() / mean
    }
}

/// Lets `threads` threads take one lock again and again for `ms`.
#[must_use]
pub fn contest(kind: LockKind, threads: usize, ms: u64, section: Section) -> Contest {
    with_lock!(kind, L => contend::<L>(threads, ms, section))
}

/// A counter that only the holder of a lock touches.
#[derive(Debug, Default)]
struct Counter(UnsafeCell<u64>);

// SAFETY: used under a lock only.
unsafe impl Sync for Counter {}

impl Counter {
    /// # Safety
    ///
    /// The caller holds the lock that all callers share.
    #[inline]
    unsafe fn increment(&self) {
        let count = self.0.get();
        // SAFETY: passed on to the caller.
        unsafe { *count += 1 };
    }
}

fn contend<L: Lock>(threads: usize, ms: u64, section: Section) -> Contest {
    let lock = L::new(threads);
    let counter = Padded(Counter::default());
    let stop = StopFlag::default();
    let start = Barrier::new(threads + 1);
    let (by_thread, times) = thread::scope(|scope| {
        let work = || {
            start.wait();
            let mut own = 0;
            while !stop.is_set() {
                let held = lock.lock();
                // A thread that got the lock only after the end has had no turn.
                if stop.is_set() {
                    break;
                }
                match section {
                    // SAFETY: the lock is held.
                    Section::Increment => unsafe { counter.increment() },
                    Section::Sleep(length) => thread::sleep(length),
                }
                drop(held);
                own += 1;
            }
            own
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // Nothing is done before the time begins, however long this thread waits for a CPU.
        let timer = stop.set_after(scope, ms, || ());
        start.wait();
        let by_thread: Vec<u64> = workers.into_iter().map(join).collect();
        (by_thread, join(timer))
    });
    let contest = Contest { by_thread, times };
    if section == Section::Increment {
        assert_eq!(counter.0.0.into_inner(), contest.sections(), "the lock let two threads in at once");
    }
    contest
}

/// The same counter on one thread without a lock, for `ms`.
#[must_use]
pub fn count_alone(ms: u64) -> Contest {
    let stop = StopFlag::default();
    thread::scope(|scope| {
        let timer = stop.set_after(scope, ms, || ());
        let mut counter = 0_u64;
        while !stop.is_set() {
            // In memory each time, as under a lock.
            *black_box(&mut counter) += 1;
        }
        Contest { by_thread: vec![counter], times: join(timer) }
    })
}

/// Lets `threads` threads compute fingerprints of `iterations` rounds for `ms`, each for itself: nothing is
/// drawn, passed on or shared, so that what they lack of being `threads` times as fast is the machine's.
#[must_use]
pub fn independent(iterations: u32, threads: usize, ms: u64) -> Contest {
    let stop = StopFlag::default();
    let start = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let work = || {
            start.wait();
            let (mut own, mut seed) = (0, 1);
            while !stop.is_set() {
                seed = fingerprint(iterations, seed);
                own += 1;
            }
            black_box(seed);
            own
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // Nothing is done before the time begins, however long this thread waits for a CPU.
        let timer = stop.set_after(scope, ms, || ());
        start.wait();
        let by_thread = workers.into_iter().map(join).collect();
        Contest { by_thread, times: join(timer) }
    })
}

/// Time of one lock and unlock that nobody else wants [ns]: median of up to 101 blocks of together
/// `count` rounds.
#[must_use]
pub fn uncontended_ns(kind: LockKind, count: u64) -> f64 {
    with_lock!(kind, L => uncontended::<L>(count))
}

#[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
fn uncontended<L: Lock>(count: u64) -> f64 {
    let lock = L::new(1);
    let blocks = count.clamp(1, 101);
    let rounds = (count / blocks).max(1);
    let mut block_ns: Vec<f64> = (0..blocks)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                drop(black_box(&lock).lock());
            }
            start.elapsed().as_nanos() as f64 / rounds as f64
        })
        .collect();
    block_ns.sort_by(f64::total_cmp);
    block_ns[block_ns.len() / 2]
}

/// Length of a section of the sleeper test.
pub const SLEEP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_increment_is_counted() {
        for (_, kind, name) in LockKind::ALL {
            let outcome = contest(kind, 3, 20, Section::Increment);
            assert_eq!(outcome.by_thread.len(), 3);
            assert!(outcome.sections() > 0 && outcome.rate_per_s() > 0.0, "{name}");
        }
    }

    #[test]
    fn only_one_thread_sleeps_at_a_time() {
        for (_, kind, name) in LockKind::ALL {
            let outcome = contest(kind, 6, 60, Section::Sleep(SLEEP));
            let longest_ms = outcome.times.wall_ns.div_ceil(1_000_000);
            assert!((1..=longest_ms).contains(&outcome.sections()), "{name} {outcome:?}");
        }
    }

    #[test]
    fn unfairness_is_the_coefficient_of_variation() {
        let of = |by_thread: &[u64]| {
            let times = Times { cpu_ns: 0, wall_ns: 1 };
            Contest { by_thread: by_thread.to_vec(), times }.unfairness()
        };
        assert!(of(&[5, 5, 5]).abs() < 1e-12);
        // Mean 2, deviation 2.
        assert!((of(&[0, 4]) - 1.0).abs() < 1e-12);
        assert!(of(&[0, 0]).abs() < 1e-12);
    }

    #[test]
    fn independent_threads_each_have_their_turn() {
        let outcome = independent(1000, 2, 100);
        assert_eq!(outcome.by_thread.len(), 2);
        assert!(outcome.by_thread.iter().all(|&own| own > 0), "{outcome:?}");
    }

    #[test]
    fn a_counter_alone_counts() {
        assert!(count_alone(5).sections() > 1000);
        assert!(uncontended_ns(LockKind::Std, 1000) > 0.0);
    }
}
