use super::raw::RawLock;
use crate::Padded;
use crate::atomic::{Acquire, AtomicU32, Relaxed, Release, pause};
use crate::wait::Sleepers;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// Test and set: everybody swaps until somebody gets `FREE` back.
///
/// Each attempt takes the cache line away from the holder. Not fair.
#[derive(Debug)]
pub struct TestAndSet {
    state: Padded<Sleepers>,
}

/// Test, then test and set, with exponential backoff.
///
/// Waiting threads read their own copy of the cache line and attempt only when it changes; after a
/// failed attempt they stay away for twice as long. Not fair.
///
/// SOURCE: T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
/// Multiprocessors", IEEE TPDS 1(1), 1990, section III.
#[derive(Debug)]
pub struct TestTestAndSet {
    state: Padded<Sleepers>,
}

#[inline]
fn swap(word: &AtomicU32) -> Result<(), u32> {
    // ORDERING: pairs with the Release in `free`: what the last holder wrote is seen.
    match word.swap(TAKEN, Acquire) {
        FREE => Ok(()),
        taken => Err(taken),
    }
}

#[inline]
fn read_then_swap(word: &AtomicU32) -> Result<(), u32> {
    match word.load(Relaxed) {
        FREE => swap(word),
        taken => Err(taken),
    }
}

#[inline]
fn free(state: &Sleepers) {
    // ORDERING: pairs with the Acquire in `swap`.
    #[cfg(not(loom))]
    state.word().store(FREE, Release);
    // loom 0.7 keeps no total order of plain stores and exchanges of one word: it lets an exchange that
    // fails hide a store that came before it. An exchange in place of the store is ordered.
    #[cfg(loom)]
    state.word().swap(FREE, Release);
    // One is enough: who is woken and comes too late sleeps on, and the next release wakes again.
    state.wake(1);
}

// SAFETY: whoever finds `FREE` in an exchange for `TAKEN` is the only one until a release writes `FREE`.
unsafe impl RawLock for TestAndSet {
    type Token = ();

    fn with_threads(_: usize) -> Self {
        Self { state: Padded(Sleepers::new(FREE)) }
    }

    #[inline]
    fn acquire(&self) {
        if swap(self.state.word()).is_err() {
            self.state.wait_until(swap);
        }
    }

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        swap(self.state.word()).ok()
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        free(&self.state);
    }
}

/// Longest pause of the backoff [spins].
///
/// SOURCE: about as long as a cache line needs to travel between sockets, 0.5 to 2 us.
#[cfg(not(any(loom, miri)))]
const LONGEST_BACKOFF: u32 = 64;
#[cfg(any(loom, miri))]
const LONGEST_BACKOFF: u32 = 1;

impl TestTestAndSet {
    #[cold]
    fn acquire_late(&self) {
        let word = self.state.word();
        let mut backoff = 1;
        while backoff < LONGEST_BACKOFF {
            for _ in 0..backoff {
                pause();
            }
            if read_then_swap(word).is_ok() {
                return;
            }
            backoff *= 2;
        }
        self.state.wait_until(read_then_swap);
    }
}

// SAFETY: as above.
unsafe impl RawLock for TestTestAndSet {
    type Token = ();

    fn with_threads(_: usize) -> Self {
        Self { state: Padded(Sleepers::new(FREE)) }
    }

    #[inline]
    fn acquire(&self) {
        if swap(self.state.word()).is_err() {
            self.acquire_late();
        }
    }

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        read_then_swap(self.state.word()).ok()
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        free(&self.state);
    }
}
