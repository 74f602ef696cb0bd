use super::raw::RawLock;
use crate::Padded;
use crate::atomic::{Acquire, AtomicU32, Relaxed, Release};
use crate::wait::Sleepers;

/// Ticket lock: take a number, wait until it is called. First come, first served.
///
/// All waiting threads watch one word, so each release moves its cache line to all of them.
///
/// SOURCE: J. Mellor-Crummey and M. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
/// Multiprocessors", ACM TOCS 9(1), 1991, section 2.2.
#[derive(Debug)]
pub struct Ticket {
    next: Padded<AtomicU32>,
    serving: Padded<Sleepers>,
}

impl Ticket {
    #[inline]
    fn is_served(&self, ticket: u32) -> Result<(), u32> {
        // ORDERING: pairs with the Release in `release`: what the last holder wrote is seen.
        match self.serving.word().load(Acquire) {
            called if called == ticket => Ok(()),
            other => Err(other),
        }
    }

    #[inline]
    fn wait(&self, ticket: u32) {
        if self.is_served(ticket).is_err() {
            self.serving.wait_until(|_| self.is_served(ticket));
        }
    }
}

// SAFETY: a number enters when it is called, each is given to one taker, and a release calls the next one.
unsafe impl RawLock for Ticket {
    type Token = u32;

    fn with_threads(_: usize) -> Self {
        Self { next: Padded(AtomicU32::new(0)), serving: Padded(Sleepers::new(0)) }
    }

    #[inline]
    fn acquire(&self) -> u32 {
        let ticket = self.next.fetch_add(1, Relaxed);
        self.wait(ticket);
        ticket
    }

    #[inline]
    fn try_acquire(&self) -> Option<u32> {
        let ticket = self.serving.word().load(Relaxed);
        let taken = self.next.compare_exchange(ticket, ticket.wrapping_add(1), Relaxed, Relaxed);
        taken.is_ok().then(|| {
            // Nobody had taken the number that was being called: it is ours and called already, unless
            // all 2^32 numbers went by in between. Then it must be waited for.
            self.wait(ticket);
            ticket
        })
    }

    #[inline]
    unsafe fn release(&self, ticket: u32) {
        // ORDERING: pairs with the Acquire in `is_served`.
        self.serving.word().store(ticket.wrapping_add(1), Release);
        // All of them: the system cannot know who has the next number.
        self.serving.wake(u32::MAX);
    }
}
