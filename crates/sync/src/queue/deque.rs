//! One owner, any number of thieves.
//!
//! SOURCE: D. Chase and Y. Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005; memory orderings: N.
//! Lê, A. Pop, A. Cohen, F. Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak Memory Models",
//! `PPoPP` 2013, figure 1. Deviation: of fixed size, so `push` can fail and nothing is ever reallocated.

use std::marker::PhantomData;
#[cfg(not(loom))]
use std::sync::atomic::fence;

#[cfg(loom)]
use loom::sync::atomic::fence;

use super::{Full, slot_count};
use crate::Packet;
use crate::Padded;
use crate::atomic::{Acquire, AtomicU64, AtomicUsize, Ordering::SeqCst, Relaxed, Release, Shared};

/// A value that fits one word. A thief may read a slot while it is being overwritten and throws the
/// value away then; that is only sound if reading is one atomic access.
pub trait Word: Copy {
    /// The value as a word.
    fn to_word(self) -> u64;
    /// The value of a word that [`Word::to_word`] gave.
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn from_word(word: u64) -> Self {
        word
    }
}

impl Word for Packet {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self.iterations) << 32 | u64::from(self.seed)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both halves are meant")]
    fn from_word(word: u64) -> Self {
        Self { iterations: (word >> 32) as u32, seed: word as u32 }
    }
}

/// What a thief got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stolen<T> {
    /// The oldest value.
    Value(T),
    /// There is none.
    Empty,
    /// Somebody else was faster; it may pay to try again.
    Lost,
}

/// A deque of `depth` values: its owner pushes and pops at the young end, thieves take from the old end.
#[derive(Debug)]
pub struct Deque<T> {
    owner: Padded<Owner>,
    /// Position of the oldest value.
    top: Padded<AtomicUsize>,
    slots: Box<[AtomicU64]>,
    depth: usize,
    values: PhantomData<T>,
}

#[derive(Debug)]
struct Owner {
    /// Position behind the youngest value.
    bottom: AtomicUsize,
    /// `top` when the owner last looked at it: never ahead of the truth.
    top_seen: Shared<usize>,
}

// SAFETY: slots and positions are atomics; what the owner remembers is used by the owner only.
unsafe impl<T: Send> Sync for Deque<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Deque<T> {}

impl<T: Word> Deque<T> {
    /// A deque for `depth` values.
    ///
    /// # Panics
    ///
    /// If `depth` is 0.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        Self {
            owner: Padded(Owner { bottom: AtomicUsize::new(0), top_seen: Shared::new(0) }),
            top: Padded(AtomicUsize::new(0)),
            slots: (0..slot_count(depth)).map(|_| AtomicU64::new(0)).collect(),
            depth,
            values: PhantomData,
        }
    }

    /// The owner's end and a thief's, which can be copied.
    ///
    /// ```
    /// use steelyard_sync::{Deque, Stolen};
    ///
    /// let mut deque = Deque::new(4);
    /// let (mut owner, thief) = deque.split();
    /// for value in 1_u64..=3 {
    ///     owner.push(value).unwrap();
    /// }
    /// assert_eq!(thief.steal(), Stolen::Value(1));
    /// assert_eq!([owner.pop(), owner.pop(), owner.pop()], [Some(3), Some(2), None]);
    /// ```
    ///
    /// Thieves can be copied, the owner cannot:
    ///
    /// ```compile_fail,E0382
    /// let mut deque = steelyard_sync::Deque::<u64>::new(4);
    /// let (owner, thief) = deque.split();
    /// let copies = (thief, thief, owner, owner);
    /// ```
    pub fn split(&mut self) -> (DequeOwner<'_, T>, Thief<'_, T>) {
        (DequeOwner(self), Thief(self))
    }

    /// Values inside, as of a moment ago.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        // ORDERING: Acquire keeps the second load behind the first; `top` only grows. The owner's pop
        // lowers `bottom` below `top` for a moment: that is empty.
        let top = self.top.load(Acquire);
        let count = self.owner.bottom.load(Relaxed).wrapping_sub(top).cast_signed();
        count.max(0).cast_unsigned()
    }

    /// Whether it was empty a moment ago.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn slot(&self, position: usize) -> &AtomicU64 {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Adds a value at the young end.
    ///
    /// # Safety
    ///
    /// Only one thread may be the owner.
    #[inline]
    pub(crate) unsafe fn push(&self, value: T) -> Result<(), Full<T>> {
        let bottom = self.owner.bottom.load(Relaxed);
        // SAFETY: the caller is the owner, and only the owner uses this cell.
        let mut top = self.owner.top_seen.with(|top| unsafe { *top });
        if bottom.wrapping_sub(top) >= self.depth {
            // ORDERING: pairs with the thief's exchange: it has read the slot that is written next.
            top = self.top.load(Acquire);
            // SAFETY: as above.
            self.owner.top_seen.with_mut(|seen| unsafe { *seen = top });
            if bottom.wrapping_sub(top) >= self.depth {
                return Err(Full(value));
            }
        }
        self.slot(bottom).store(value.to_word(), Relaxed);
        // ORDERING: pairs with the thief's Acquire of `bottom`: the value is there.
        self.owner.bottom.store(bottom.wrapping_add(1), Release);
        Ok(())
    }

    /// Takes the youngest value.
    ///
    /// # Safety
    ///
    /// As for [`Deque::push`].
    pub(crate) unsafe fn pop(&self) -> Option<T> {
        let bottom = self.owner.bottom.load(Relaxed).wrapping_sub(1);
        // ORDERING: pairs with the thief's Acquire of `bottom`, which may see this position in place of the
        // one that `push` published. The stores further down come after a fence, which does the same.
        self.owner.bottom.store(bottom, Release);
        // ORDERING: pairs with the fence in `steal`. Of the owner, who lowers `bottom` and reads `top`, and
        // a thief, who reads `top` and then `bottom`, one sees what the other did: they cannot both take
        // the last value without meeting in the exchange.
        fence(SeqCst);
        let top = self.top.load(Relaxed);
        let left = bottom.wrapping_sub(top).cast_signed();
        if left < 0 {
            self.owner.bottom.store(bottom.wrapping_add(1), Relaxed);
            return None;
        }
        let value = self.slot(bottom).load(Relaxed);
        if left > 0 {
            return Some(T::from_word(value));
        }
        // ORDERING: SeqCst as in the paper: the exchange is totally ordered with the fences, so that a
        // thief that comes later sees it. The last value belongs to whoever moves `top`.
        let won = self.top.compare_exchange(top, top.wrapping_add(1), SeqCst, Relaxed).is_ok();
        self.owner.bottom.store(bottom.wrapping_add(1), Relaxed);
        won.then(|| T::from_word(value))
    }

    /// Takes the oldest value. Any thread may call it.
    #[inline]
    pub fn steal(&self) -> Stolen<T> {
        // ORDERING: pairs with the exchange of other thieves, so that `bottom` below is not older than it.
        let top = self.top.load(Acquire);
        // ORDERING: pairs with the fence in `pop`.
        fence(SeqCst);
        // ORDERING: pairs with the Release in `push`: the value is there.
        let bottom = self.owner.bottom.load(Acquire);
        if bottom.wrapping_sub(top).cast_signed() <= 0 {
            return Stolen::Empty;
        }
        // Before the exchange: afterwards the owner may overwrite it.
        let value = self.slot(top).load(Relaxed);
        // ORDERING: SeqCst as in `pop`; its Release half pairs with the Acquire in `push`.
        match self.top.compare_exchange(top, top.wrapping_add(1), SeqCst, Relaxed) {
            Ok(_) => Stolen::Value(T::from_word(value)),
            Err(_) => Stolen::Lost,
        }
    }
}

/// The end of the owner.
#[derive(Debug)]
pub struct DequeOwner<'a, T>(&'a Deque<T>);

impl<T: Word> DequeOwner<'_, T> {
    /// Adds a value at the young end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there are `depth` values inside.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), Full<T>> {
        // SAFETY: `split` made one owner, and it is borrowed exclusively.
        unsafe { self.0.push(value) }
    }

    /// Takes the youngest value.
    pub fn pop(&mut self) -> Option<T> {
        // SAFETY: as above.
        unsafe { self.0.pop() }
    }
}

/// The end of thieves.
#[derive(Debug, Clone, Copy)]
pub struct Thief<'a, T>(&'a Deque<T>);

impl<T: Word> Thief<'_, T> {
    /// Takes the oldest value.
    #[inline]
    #[must_use]
    pub fn steal(&self) -> Stolen<T> {
        self.0.steal()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
