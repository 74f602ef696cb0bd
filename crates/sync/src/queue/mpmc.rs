//! Any number of producers and consumers.
//!
//! SOURCE: D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010.

use std::mem::MaybeUninit;

use super::{Full, slot_count};
use crate::Padded;
use crate::atomic::{Acquire, AtomicU32, AtomicUsize, Ordering::SeqCst, Relaxed, Release, Shared};
use crate::wait::{Moment, fence};

/// A queue of `depth` values for any number of producers and consumers.
///
/// A side reserves a position with one compare-and-swap. Each slot carries a stamp: the position that
/// may be written next, or that position plus one once it is written. Every operation takes effect at one
/// moment between its call and its return (it is linearizable): a queue that says full held `depth` values
/// then, one that says empty held none. The price: a thread that loses its core between reserving a position
/// and stamping its slot holds up those who need that very slot.
///
/// ```
/// let queue = steelyard_sync::Mpmc::new(2);
/// assert!(queue.push(1).is_ok() && queue.push(2).is_ok());
/// assert_eq!(queue.push(3).unwrap_err().0, 3);
/// assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), None]);
/// ```
#[derive(Debug)]
pub struct Mpmc<T> {
    pushed: Padded<AtomicUsize>,
    popped: Padded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
    depth: usize,
}

#[derive(Debug)]
struct Slot<T> {
    /// Lower half of a position. A thread that was away for 2^32 positions may take a stamp for the one it
    /// waits for; its exchange of the whole position then fails.
    stamp: AtomicU32,
    value: Shared<MaybeUninit<T>>,
}

// SAFETY: values move between threads (`Send`); a slot belongs to the one thread that has reserved its
// position, until it stamps it.
unsafe impl<T: Send> Sync for Mpmc<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Mpmc<T> {}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn stamp(position: usize) -> u32 {
    position as u32
}

impl<T: Copy> Mpmc<T> {
    /// A queue for `depth` values.
    ///
    /// # Panics
    ///
    /// If `depth` is 0.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        // With one slot the stamps "written" and "free for the next lap" would be the same.
        let count = slot_count(depth).max(2);
        let slots = (0..count).map(|place| Slot {
            stamp: AtomicU32::new(stamp(place)),
            value: Shared::new(MaybeUninit::uninit()),
        });
        Self {
            pushed: Padded(AtomicUsize::new(0)),
            popped: Padded(AtomicUsize::new(0)),
            slots: slots.collect(),
            depth,
        }
    }

    /// Values inside, as of a moment ago, those being written included.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        // ORDERING: SeqCst keeps the three loads in their order.
        let mut pushed = self.pushed.load(SeqCst);
        loop {
            let popped = self.popped.load(SeqCst);
            let now = self.pushed.load(SeqCst);
            if now == pushed {
                // Nothing was pushed meanwhile, so both numbers belong to the moment of the middle load.
                return pushed.wrapping_sub(popped);
            }
            pushed = now;
        }
    }

    /// Whether it was empty a moment ago.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: SeqCst keeps the second load behind the first. If they differ, something was inside in
        // between, because `popped` only grows.
        let popped = self.popped.load(SeqCst);
        self.pushed.load(SeqCst) == popped
    }

    #[inline]
    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Whether fewer than `depth` values were inside when a value had the `position` to go to, as far as
    /// this thread knows. A position that is no longer the next one counts as none.
    #[inline]
    fn has_room(&self, position: usize) -> bool {
        // With as many slots as `depth` the stamp has said so already. What is read may be older than the
        // truth; `popped` only grows, so there is more room than that at most.
        self.depth == self.slots.len() || position.wrapping_sub(self.popped.load(Relaxed)) < self.depth
    }

    /// Adds a value.
    ///
    /// Where the next slot is just being read by another thread, waits for it.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there are `depth` values inside.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), Full<T>> {
        let mut moment = Moment::default();
        let mut position = self.pushed.load(Relaxed);
        loop {
            let slot = self.slot(position);
            // ORDERING: pairs with the Release in `pop`: the value of the lap before has been read.
            let is_free = slot.stamp.load(Acquire) == stamp(position);
            if is_free && self.has_room(position) {
                let next = position.wrapping_add(1);
                // ORDERING: pairs with the fence in `is_full_before`: whoever sees this position sees every
                // value that was taken before it.
                match self.pushed.compare_exchange_weak(position, next, SeqCst, Relaxed) {
                    Ok(_) => {
                        // SAFETY: the position is reserved by this thread, and the stamp says that the
                        // slot has been read.
                        slot.value.with_mut(|slot| unsafe { (*slot).write(value) });
                        // ORDERING: pairs with the Acquire in `pop`: the value is there.
                        slot.stamp.store(stamp(next), Release);
                        return Ok(());
                    }
                    Err(now) => position = now,
                }
            } else if self.is_full_before(position) {
                return Err(Full(value));
            } else {
                moment.pass();
                position = self.pushed.load(Relaxed);
            }
        }
    }

    /// Takes the oldest value, unless there is none.
    ///
    /// Where the oldest value is just being written by another thread, waits for it.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut moment = Moment::default();
        let mut position = self.popped.load(Relaxed);
        loop {
            let slot = self.slot(position);
            let next = position.wrapping_add(1);
            // ORDERING: pairs with the Release in `push`: the value is there.
            let is_written = slot.stamp.load(Acquire) == stamp(next);
            if is_written {
                // ORDERING: pairs with the fence in `is_empty_at`: whoever sees this position sees every
                // value that was added before it.
                match self.popped.compare_exchange_weak(position, next, SeqCst, Relaxed) {
                    Ok(_) => {
                        // SAFETY: the position is reserved by this thread, and the stamp says that the
                        // slot has been written.
                        let value = slot.value.with(|slot| unsafe { slot.cast::<T>().read() });
                        // ORDERING: pairs with the Acquire in `push`: the slot may be written again.
                        slot.stamp.store(stamp(position.wrapping_add(self.slots.len())), Release);
                        return Some(value);
                    }
                    Err(now) => position = now,
                }
            } else if self.is_empty_at(position) {
                return None;
            } else {
                moment.pass();
                position = self.popped.load(Relaxed);
            }
        }
    }

    /// Whether the queue is full, as seen by a thread that has read `position` from `pushed`.
    #[cold]
    fn is_full_before(&self, position: usize) -> bool {
        // ORDERING: keeps the load behind that of `position`, so that at the moment of this load at least
        // `position` values had been pushed; pairs with the exchanges. If others went on since, there is room
        // or somebody else has taken it: `popped` may even be beyond `position`.
        fence::full();
        let inside = position.wrapping_sub(self.popped.load(Relaxed)).cast_signed();
        inside >= self.depth.cast_signed()
    }

    /// Whether the queue is empty, as seen by a thread that has read `position` from `popped`.
    #[cold]
    fn is_empty_at(&self, position: usize) -> bool {
        // ORDERING: as above: at least `position` values had been popped when just as many were pushed.
        fence::full();
        self.pushed.load(Relaxed) == position
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
