use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::Padded;
use crate::strategy::Access;
use crate::timer::StopFlag;
use crate::wait::{Doorbell, Patience, fence};

/// What the threads of a run know of each other: when to begin and to end, and who sleeps.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) stop: Padded<StopFlag>,
    closed: AtomicBool,
    start: Barrier,
    dispatcher: Padded<Doorbell>,
    workers: Box<[Padded<Doorbell>]>,
    asleep: Padded<AtomicUsize>,
    access: Access,
    queues: usize,
    cores: usize,
}

/// A worker's only wish.
const WORK: u32 = 1;

impl Crew {
    pub(crate) fn new(workers: usize, access: Access, queues: usize) -> Self {
        Self {
            stop: Padded::default(),
            closed: AtomicBool::new(false),
            start: Barrier::new(workers + 1),
            dispatcher: Padded(Doorbell::new()),
            workers: (0..workers).map(|_| Padded(Doorbell::new())).collect(),
            asleep: Padded::default(),
            access,
            queues,
            cores: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Waits until every thread is there.
    pub(crate) fn arrive(&self) {
        self.start.wait();
    }

    /// Says that no further packet comes.
    pub(crate) fn close(&self) {
        // ORDERING: pairs with `is_closed`: who sees it sees every packet that was dispatched.
        self.closed.store(true, Ordering::Release);
        self.wake_all();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: pairs with `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes every thread, after a change that all must see.
    pub(crate) fn wake_all(&self) {
        if self.dispatcher.wish().is_some() {
            self.dispatcher.ring();
        }
        for worker in 0..self.workers.len() {
            self.wake(worker);
        }
    }

    fn wake(&self, worker: usize) -> bool {
        let was_asleep = self.workers[worker].wish().is_some() && self.workers[worker].ring();
        if was_asleep {
            // Not left to the sleeper, who needs a while to get up: it would be woken again and again.
            self.asleep.fetch_sub(1, Ordering::Relaxed);
        }
        was_asleep
    }

    /// Lets a worker sleep unless `is_ready`.
    pub(crate) fn sleep(&self, worker: usize, is_ready: impl FnOnce() -> bool) {
        self.asleep.fetch_add(1, Ordering::Relaxed);
        if !self.workers[worker].sleep_unless(WORK, is_ready) {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets the dispatcher sleep until workers need more packets in `queue` or for a time at most, unless
    /// `is_ready`.
    pub(crate) fn sleep_for_room(&self, queue: usize, longest: Duration, is_ready: impl FnOnce() -> bool) {
        let wish = u32::try_from(queue).unwrap_or(u32::MAX - 1) + 1;
        self.dispatcher.sleep_unless_for(wish, longest, is_ready);
    }

    /// How long a thread waits before it sleeps, given who else could use its core.
    pub(crate) fn patience(&self) -> Patience {
        let asleep = match self.access {
            Access::Home => 0,
            Access::Anyone => self.asleep.load(Ordering::Relaxed).min(self.workers.len()),
        };
        let awake = self.workers.len() - asleep;
        // The dispatcher needs a core as well.
        match awake < self.cores {
            true if asleep == 0 => Patience::LONG,
            true => Patience::SHORT,
            false => Patience::CROWDED,
        }
    }

    /// Called by a worker every few packets and before it waits; `is_low` says whether the queue for
    /// which the dispatcher sleeps is about to run out.
    #[inline]
    pub(crate) fn look_for_dispatcher(&self, is_low: impl FnOnce(usize) -> bool) {
        if let Some(wish) = self.dispatcher.wish()
            && is_low(wish as usize - 1)
        {
            self.dispatcher.ring();
        }
    }

    /// Called by the dispatcher after it has added to `queue`; `is_dense` says whether so much is
    /// waiting there that one more worker pays.
    #[inline]
    pub(crate) fn added_to(&self, queue: usize, is_dense: impl FnOnce() -> bool) {
        match self.access {
            Access::Home => self.wake_at_home(queue),
            Access::Anyone => {
                // The doorbells' own protocol covers who counts himself and who sleeps: the count is
                // raised before the announcement, so whoever announced is counted.
                fence::full();
                let asleep = self.asleep.load(Ordering::Relaxed);
                if asleep != 0 && self.wants_another(asleep, self.cores.saturating_sub(1), is_dense) {
                    self.wake_any();
                }
            }
        }
    }

    /// Called by the dispatcher before it sleeps: its core is free for one more worker.
    pub(crate) fn lend_core(&self) {
        if self.access == Access::Anyone {
            let asleep = self.asleep.load(Ordering::Relaxed);
            if asleep != 0 && self.wants_another(asleep, self.cores, || true) {
                self.wake_any();
            }
        }
    }

    /// Whether one more worker should be awake: always if none is, else if a core is left for it.
    fn wants_another(&self, asleep: usize, cores: usize, is_dense: impl FnOnce() -> bool) -> bool {
        let awake = self.workers.len().saturating_sub(asleep);
        awake == 0 || (awake < cores && is_dense())
    }

    #[cold]
    fn wake_any(&self) {
        let _ = (0..self.workers.len()).any(|worker| self.wake(worker));
    }

    #[inline]
    fn wake_at_home(&self, queue: usize) {
        let step = self.queues.min(self.workers.len());
        let mut worker = queue % step;
        while worker < self.workers.len() {
            self.wake(worker);
            worker += step;
        }
    }
}
