#[cfg(not(loom))]
use std::time::Duration;

use super::{Futex, fence};
use crate::atomic::{Acquire, Relaxed, Release};

/// Where one thread sleeps until another one rings.
///
/// The sleeper writes what it waits for, a number other than 0, so that others need not ring for
/// anything else.
#[derive(Debug)]
pub(crate) struct Doorbell {
    /// `AWAKE`, or what the sleeper waits for.
    wish: Futex,
}

const AWAKE: u32 = 0;

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self { wish: Futex::new(AWAKE) }
    }

    /// Sleeps until somebody rings for `wish`, unless `is_ready` after the announcement.
    ///
    /// Only one thread may sleep at a time. Says whether somebody rang, be it in vain.
    pub(crate) fn sleep_unless(&self, wish: u32, is_ready: impl FnOnce() -> bool) -> bool {
        self.wish.word.store(wish, Relaxed);
        // Announcement before the last look; whoever rings writes before it looks at the wish.
        fence::full();
        if is_ready() {
            return self.wish.word.swap(AWAKE, Relaxed) == AWAKE;
        }
        // ORDERING: pairs with the swap in `ring`: what was written before ringing is seen.
        while self.wish.word.load(Acquire) == wish {
            self.wish.sleep_while(wish);
        }
        true
    }

    /// The same, for a time at most.
    #[cfg(not(loom))]
    pub(crate) fn sleep_unless_for(&self, wish: u32, longest: Duration, is_ready: impl FnOnce() -> bool) {
        self.wish.word.store(wish, Relaxed);
        fence::full();
        if !is_ready() {
            self.wish.sleep_while_for(wish, longest);
        }
        // ORDERING: as in `sleep_unless`.
        self.wish.word.swap(AWAKE, Acquire);
    }

    /// What the sleeper waits for, if there is one. Call it after a write that may fulfil the wish.
    #[inline]
    pub(crate) fn wish(&self) -> Option<u32> {
        fence::full();
        let wish = self.wish.word.load(Relaxed);
        (wish != AWAKE).then_some(wish)
    }

    /// Wakes the sleeper; says whether there was one.
    #[cold]
    pub(crate) fn ring(&self) -> bool {
        // ORDERING: pairs with the load in `sleep_unless`.
        let was_asleep = self.wish.word.swap(AWAKE, Release) != AWAKE;
        if was_asleep {
            self.wish.wake(1);
        }
        was_asleep
    }
}
