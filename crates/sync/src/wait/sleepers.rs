use super::{Futex, Patience, fence};
use crate::atomic::{AtomicU32, Relaxed};

/// A word that waiting threads watch, with a count of those who sleep on it.
///
/// Whoever changes the word calls [`Sleepers::wake`] afterwards; with nobody asleep that costs a load.
#[derive(Debug)]
pub(crate) struct Sleepers {
    futex: Futex,
    asleep: AtomicU32,
}

impl Sleepers {
    pub(crate) fn new(value: u32) -> Self {
        Self { futex: Futex::new(value), asleep: AtomicU32::new(0) }
    }

    /// The word.
    #[inline]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.futex.word
    }

    /// Waits until `look` is content; otherwise it gives the value of the word that it saw.
    #[cold]
    pub(crate) fn wait_until(&self, mut look: impl FnMut(&AtomicU32) -> Result<(), u32>) {
        if Patience::USUAL.wait(|| look(self.word()).is_ok()) {
            return;
        }
        self.asleep.fetch_add(1, Relaxed);
        // The count before the last look; whoever changes the word does so before it reads the count.
        fence::heavy();
        while let Err(seen) = look(self.word()) {
            self.futex.sleep_while(seen);
        }
        self.asleep.fetch_sub(1, Relaxed);
    }

    /// Wakes up to `count` of those who sleep, after a change of the word.
    #[inline]
    pub(crate) fn wake(&self, count: u32) {
        fence::light();
        if self.asleep.load(Relaxed) != 0 {
            self.futex.wake(count);
        }
    }
}
