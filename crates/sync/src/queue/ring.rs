//! One producer, one consumer.
//!
//! SOURCE: L. Lamport, "Proving the Correctness of Multiprocess Programs", IEEE TSE 3(2), 1977; the
//! remembered positions of the other side: J. Giacomoni et al., "`FastForward` for Efficient Pipeline
//! Parallelism", `PPoPP` 2008, and P. Lee et al., "A Lock-Free, Cache-Efficient Multi-Core
//! Synchronization Mechanism", IPDPS 2009.

use std::mem::MaybeUninit;

use super::{Full, slot_count};
use crate::Padded;
use crate::atomic::{Acquire, AtomicUsize, Relaxed, Release, Shared};

/// A ring of `depth` values between one producer and one consumer, without locks.
///
/// Positions only grow; a position modulo the number of slots is its slot. Two things keep cache lines
/// from travelling for every value. Each side remembers what it last saw of the other's position and
/// looks again only when that says full or empty. And each side publishes its own position only every
/// few values, so that the two do not work on the same line of slots: a quarter of the depth, at most 8.
/// [`Producer::flush`] and [`Consumer::flush`] publish what is held back; a producer does so when it finds no
/// room, and a consumer when it finds nothing.
///
/// ```
/// let mut ring = steelyard_sync::Ring::new(2);
/// let (mut producer, mut consumer) = ring.split();
/// assert!(producer.push(1).is_ok() && producer.push(2).is_ok());
/// assert_eq!(producer.push(3).unwrap_err().0, 3);
/// producer.flush();
/// assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [Some(1), Some(2), None]);
/// ```
///
/// There is one producer, not two:
///
/// ```compile_fail,E0499
/// let mut ring = steelyard_sync::Ring::new(2);
/// let (mut producer, _) = ring.split();
/// let (mut second, _) = ring.split();
/// assert!(producer.push(1).is_ok() && second.push(2).is_ok());
/// ```
#[derive(Debug)]
pub struct Ring<T> {
    producer: Side,
    consumer: Side,
    slots: Box<[Shared<MaybeUninit<T>>]>,
    depth: usize,
    /// Values after which a side publishes its position.
    stride: usize,
}

/// One end of the ring, written by one thread.
#[derive(Debug)]
struct Side {
    /// Values pushed or popped so far, as far as the other side may know.
    published: Padded<AtomicUsize>,
    /// Values pushed or popped so far, and the other side's position when it was last looked at, which
    /// is never ahead of the truth. Not on the line of `published`, at which the other side looks while
    /// this side works.
    memory: Padded<Shared<Memory>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    own: usize,
    other: usize,
}

impl Side {
    fn new() -> Self {
        Self { published: Padded(AtomicUsize::new(0)), memory: Padded(Shared::new(Memory::default())) }
    }

    /// # Safety
    ///
    /// Only the thread that is this side may call it.
    #[inline]
    unsafe fn recall(&self) -> Memory {
        // SAFETY: passed on to the caller.
        self.memory.with(|memory| unsafe { *memory })
    }

    /// # Safety
    ///
    /// As for [`Side::recall`].
    #[inline]
    unsafe fn remember(&self, now: Memory) {
        // SAFETY: passed on to the caller.
        self.memory.with_mut(|memory| unsafe { *memory = now });
    }
}

// SAFETY: values move between threads (`Send`); the positions see to it that a slot is used by one
// side at a time, and only the thread that is a side uses what that side remembers.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

/// Values per cache line of 64 bytes, for values of 8 bytes.
const LONGEST_STRIDE: usize = 8;

impl<T: Copy> Ring<T> {
    /// A ring for `depth` values.
    ///
    /// # Panics
    ///
    /// If `depth` is 0.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        let slots = (0..slot_count(depth)).map(|_| Shared::new(MaybeUninit::uninit())).collect();
        // A quarter at most: half a queue that is free is then known to be free when it is.
        let stride = (depth / 4).clamp(1, LONGEST_STRIDE);
        Self { producer: Side::new(), consumer: Side::new(), slots, depth, stride }
    }

    /// Both ends.
    pub fn split(&mut self) -> (Producer<'_, T>, Consumer<'_, T>) {
        (Producer(self), Consumer(self))
    }

    /// Values inside, as of a moment ago and as far as both sides have published.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        // The consumer first: it can only have grown since, and then the difference is too large, not
        // negative. ORDERING: Acquire keeps the second load behind the first.
        let popped = self.consumer.published.load(Acquire);
        self.producer.published.load(Relaxed).wrapping_sub(popped)
    }

    /// Whether it was empty a moment ago, as far as both sides have published.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn slot(&self, position: usize) -> &Shared<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Adds a value; says whether the consumer may know of it and of all before.
    ///
    /// # Safety
    ///
    /// Only one thread at a time may push, and it must have seen everything that the one before did.
    #[inline]
    pub(crate) unsafe fn push(&self, value: T) -> Result<bool, Full<T>> {
        // SAFETY: the caller is the only producer.
        let mut memory = unsafe { self.producer.recall() };
        if memory.own.wrapping_sub(memory.other) >= self.depth {
            // ORDERING: pairs with the consumer's Release: it has read the slot that is written next.
            memory.other = self.consumer.published.load(Acquire);
            if memory.own.wrapping_sub(memory.other) >= self.depth {
                // SAFETY: as above.
                unsafe { self.flush() };
                return Err(Full(value));
            }
        }
        // SAFETY: fewer than `depth` values are inside, so the consumer has left this slot and does not
        // touch it before the position below is published.
        self.slot(memory.own).with_mut(|slot| unsafe { (*slot).write(value) });
        memory.own = memory.own.wrapping_add(1);
        // SAFETY: as above.
        unsafe { self.producer.remember(memory) };
        let pays = memory.own.wrapping_sub(self.producer.published.load(Relaxed)) >= self.stride;
        if pays {
            // ORDERING: pairs with the consumer's Acquire in `look`: the values are there.
            self.producer.published.store(memory.own, Release);
        }
        Ok(pays)
    }

    /// Publishes what was pushed and held back; says whether there was anything.
    ///
    /// # Safety
    ///
    /// As for [`Ring::push`].
    #[inline]
    pub(crate) unsafe fn flush(&self) -> bool {
        // SAFETY: the caller is the only producer.
        let pushed = unsafe { self.producer.recall() }.own;
        let is_behind = self.producer.published.load(Relaxed) != pushed;
        if is_behind {
            // ORDERING: as in `push`.
            self.producer.published.store(pushed, Release);
        }
        is_behind
    }

    /// What the consumer remembers, after a look at the producer if that is fewer than `wanted` values.
    /// If there are none, publishes what was popped.
    ///
    /// # Safety
    ///
    /// As for [`Ring::pop`].
    #[inline]
    unsafe fn look(&self, wanted: usize) -> Memory {
        // SAFETY: the caller is the only consumer.
        let mut memory = unsafe { self.consumer.recall() };
        if memory.other.wrapping_sub(memory.own) < wanted {
            // ORDERING: pairs with the producer's Release: the values up to this position are there.
            memory.other = self.producer.published.load(Acquire);
            if memory.other == memory.own && self.consumer.published.load(Relaxed) != memory.own {
                // ORDERING: pairs with the producer's Acquire in `push`: the slots may be written again.
                self.consumer.published.store(memory.own, Release);
            }
        }
        memory
    }

    /// Publishes the places that are free again and held back.
    ///
    /// # Safety
    ///
    /// As for [`Ring::pop`].
    #[inline]
    pub(crate) unsafe fn flush_popped(&self) {
        // SAFETY: the caller is the only consumer.
        let popped = unsafe { self.consumer.recall() }.own;
        // ORDERING: as in `look`.
        self.consumer.published.store(popped, Release);
    }

    /// Takes the oldest value.
    ///
    /// # Safety
    ///
    /// Only one thread at a time may pop, and it must have seen everything that the one before did.
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<T> {
        // SAFETY: passed on to the caller.
        let mut memory = unsafe { self.look(1) };
        if memory.other == memory.own {
            return None;
        }
        // SAFETY: the producer has written this slot and does not touch it before the position below is
        // published.
        let value = self.slot(memory.own).with(|slot| unsafe { slot.cast::<T>().read() });
        memory.own = memory.own.wrapping_add(1);
        // SAFETY: the caller is the only consumer.
        unsafe { self.consumer.remember(memory) };
        if memory.own % LONGEST_STRIDE == 1 && memory.other.wrapping_sub(memory.own) > LONGEST_STRIDE {
            fetch_early(self.slot(memory.own.wrapping_add(LONGEST_STRIDE)));
        }
        if memory.own.wrapping_sub(self.consumer.published.load(Relaxed)) >= self.stride {
            // ORDERING: as in `look`.
            self.consumer.published.store(memory.own, Release);
        }
        Some(value)
    }

    /// Takes the oldest values, as many as there are and as `target` has room for, at once.
    ///
    /// # Safety
    ///
    /// As for [`Ring::pop`].
    #[inline]
    pub(crate) unsafe fn pop_batch(&self, target: &mut [T]) -> usize {
        // SAFETY: passed on to the caller.
        let mut memory = unsafe { self.look(target.len()) };
        let count = memory.other.wrapping_sub(memory.own).min(target.len());
        for (place, value) in target.iter_mut().take(count).enumerate() {
            let slot = self.slot(memory.own.wrapping_add(place));
            // SAFETY: as in `pop`, for each of the slots.
            *value = slot.with(|slot| unsafe { slot.cast::<T>().read() });
        }
        if count != 0 {
            memory.own = memory.own.wrapping_add(count);
            // SAFETY: the caller is the only consumer.
            unsafe { self.consumer.remember(memory) };
            // ORDERING: as in `look`.
            self.consumer.published.store(memory.own, Release);
        }
        count
    }
}

/// Begins to fetch a slot that will be read some packets later: its line is at the other core.
#[inline]
fn fetch_early<T>(slot: &Shared<MaybeUninit<T>>) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    slot.with(|slot| {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slot.cast()) };
    });
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    let _ = slot;
}

/// The end that pushes.
#[derive(Debug)]
pub struct Producer<'a, T>(&'a Ring<T>);

impl<T: Copy> Producer<'_, T> {
    /// Adds a value.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if no place is known to be free: there are `depth` values inside, or fewer by
    /// those that were taken and not published yet: less than a quarter of the depth, at most 7.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), Full<T>> {
        // SAFETY: `split` made one producer, and it is borrowed exclusively.
        unsafe { self.0.push(value) }.map(|_| ())
    }

    /// Publishes what was pushed and held back. Call it before doing anything else for a while.
    #[inline]
    pub fn flush(&mut self) {
        // SAFETY: as above.
        unsafe { self.0.flush() };
    }
}

/// The end that pops.
#[derive(Debug)]
pub struct Consumer<'a, T>(&'a Ring<T>);

impl<T: Copy> Consumer<'_, T> {
    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        // SAFETY: `split` made one consumer, and it is borrowed exclusively.
        unsafe { self.0.pop() }
    }

    /// Takes the oldest values, as many as `target` has room for, and says how many.
    #[inline]
    pub fn pop_batch(&mut self, target: &mut [T]) -> usize {
        // SAFETY: as above.
        unsafe { self.0.pop_batch(target) }
    }

    /// Publishes the places that are free again. Call it before waiting for anything else than this ring.
    #[inline]
    pub fn flush(&mut self) {
        // SAFETY: as above.
        unsafe { self.0.flush_popped() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
