use super::raw::RawLock;
use crate::Padded;
use crate::atomic::{Acquire, AtomicU32, Relaxed, Release};
use crate::wait::Sleepers;

/// Anderson's array lock: each waiting thread watches a slot of its own. First come, first served.
///
/// A slot holds the last number that was called in it, not a flag. So nothing has to be reset, and
/// with more threads than slots two may watch the same slot but never enter together.
///
/// SOURCE: T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
/// Multiprocessors", IEEE TPDS 1(1), 1990, section IV.
#[derive(Debug)]
pub struct Anderson {
    next: Padded<AtomicU32>,
    /// A power of two, so that numbers keep their slot when they wrap.
    slots: Box<[Padded<Sleepers>]>,
}

impl Anderson {
    #[inline]
    fn slot(&self, ticket: u32) -> &Sleepers {
        &self.slots[ticket as usize & (self.slots.len() - 1)]
    }

    #[inline]
    fn is_called(slot: &Sleepers, ticket: u32) -> Result<(), u32> {
        // ORDERING: pairs with the Release in `release`: what the last holder wrote is seen.
        match slot.word().load(Acquire) {
            called if called == ticket => Ok(()),
            other => Err(other),
        }
    }

    #[inline]
    fn wait(&self, ticket: u32) {
        let slot = self.slot(ticket);
        if Self::is_called(slot, ticket).is_err() {
            slot.wait_until(|_| Self::is_called(slot, ticket));
        }
    }
}

// SAFETY: a number enters when it is called, each is given to one taker, and a release calls the next one.
unsafe impl RawLock for Anderson {
    type Token = u32;

    fn with_threads(threads: usize) -> Self {
        let count = u32::try_from(threads.max(1).next_power_of_two()).unwrap_or(1 << 31);
        // Before its first turn a slot holds the number of the lap before; the first slot is called.
        let called = (0..count).map(|slot| if slot == 0 { 0 } else { slot.wrapping_sub(count) });
        Self {
            next: Padded(AtomicU32::new(0)),
            slots: called.map(|number| Padded(Sleepers::new(number))).collect(),
        }
    }

    #[inline]
    fn acquire(&self) -> u32 {
        let ticket = self.next.fetch_add(1, Relaxed);
        self.wait(ticket);
        ticket
    }

    #[inline]
    fn try_acquire(&self) -> Option<u32> {
        let ticket = self.next.load(Relaxed);
        Self::is_called(self.slot(ticket), ticket).ok()?;
        let taken = self.next.compare_exchange(ticket, ticket.wrapping_add(1), Relaxed, Relaxed);
        taken.is_ok().then(|| {
            // Called before it was taken, and so free; unless all 2^32 numbers went by in between.
            self.wait(ticket);
            ticket
        })
    }

    #[inline]
    unsafe fn release(&self, ticket: u32) {
        let next = ticket.wrapping_add(1);
        let slot = self.slot(next);
        // ORDERING: pairs with the Acquire in `is_called`.
        slot.word().store(next, Release);
        slot.wake(u32::MAX);
    }
}
