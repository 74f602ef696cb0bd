//! Any number of producers and consumers.
//!
//! SOURCE: D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010.

use std::mem::MaybeUninit;

use super::{Full, slot_count};
use crate::Padded;
use crate::atomic::{Acquire, AtomicU32, AtomicUsize, Relaxed, Release, Shared};

/// A queue of `depth` values for any number of producers and consumers.
///
/// A side reserves a position with one compare-and-swap. Each slot carries a stamp: the position that
/// may be written next, or that position plus one once it is written. A thread that loses its core
/// between reserving and stamping holds up only those who need that very slot.
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
    /// Lower half of a position: enough, because a stamp is never more than a lap away from it.
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
        // ORDERING: Acquire keeps the second load behind the first; `popped` only grows.
        let popped = self.popped.load(Acquire);
        self.pushed.load(Relaxed).wrapping_sub(popped)
    }

    /// Whether it was empty a moment ago.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Adds a value.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there are `depth` values inside or being taken out.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), Full<T>> {
        let mut position = self.pushed.load(Relaxed);
        loop {
            let slot = self.slot(position);
            // ORDERING: pairs with the Release in `pop`: the value of the lap before has been read.
            let lead = slot.stamp.load(Acquire).wrapping_sub(stamp(position)).cast_signed();
            if lead < 0 {
                return Err(Full(value));
            }
            if lead == 0 {
                // There may be more slots than `depth`. `popped` can only have grown since; if
                // `pushed` has too, the exchange below fails.
                if position.wrapping_sub(self.popped.load(Relaxed)) >= self.depth {
                    return Err(Full(value));
                }
                let next = position.wrapping_add(1);
                match self.pushed.compare_exchange_weak(position, next, Relaxed, Relaxed) {
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
            } else {
                position = self.pushed.load(Relaxed);
            }
        }
    }

    /// Takes the oldest value, unless there is none or it is still being written.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut position = self.popped.load(Relaxed);
        loop {
            let slot = self.slot(position);
            let next = position.wrapping_add(1);
            // ORDERING: pairs with the Release in `push`: the value is there.
            let lead = slot.stamp.load(Acquire).wrapping_sub(stamp(next)).cast_signed();
            if lead < 0 {
                return None;
            }
            if lead == 0 {
                match self.popped.compare_exchange_weak(position, next, Relaxed, Relaxed) {
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
            } else {
                position = self.popped.load(Relaxed);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
