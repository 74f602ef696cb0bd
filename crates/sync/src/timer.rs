use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use steelyard_work::{Stopwatch, Times};

/// Tells every thread of a run that its time is over.
#[derive(Debug, Default)]
pub(crate) struct StopFlag {
    is_set: AtomicBool,
}

impl StopFlag {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: the flag publishes nothing; whoever sees it late counts a packet that ended late
        // by less than the time a store needs to arrive.
        self.is_set.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Starts a thread that sleeps for `ms`, sets the flag, calls `wake` and gives the length of
    /// the interval.
    pub(crate) fn set_after<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        ms: u64,
        wake: impl FnOnce() + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, Times> {
        let watch = Stopwatch::start();
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(ms));
            self.set();
            let times = watch.elapsed();
            wake();
            times
        })
    }
}
