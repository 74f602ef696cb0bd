//! Nine mutual exclusion locks behind one trait.
//!
//! All of them wait in the same manner: spin briefly, then offer the core, then sleep in the kernel, so
//! that more threads than cores do not burn the time of whoever holds the lock.

use std::marker::PhantomData;

mod anderson;
mod clh;
#[cfg(not(loom))]
mod foreign;
mod mcs;
mod node;
mod test_and_set;
mod ticket;

pub use anderson::Anderson;
pub use clh::Clh;
#[cfg(not(loom))]
pub use foreign::{ParkingLot, PthreadMutex, StdMutex};
pub use mcs::Mcs;
pub use test_and_set::{TestAndSet, TestTestAndSet};
pub use ticket::Ticket;

#[cfg(all(test, loom))]
pub(crate) use node::model::free_nodes;

/// A lock.
///
/// # Safety
///
/// Queues and pipelines let a guard stand for sole access. So between the return of [`Lock::lock`] or
/// [`Lock::try_lock`] and the drop of what they gave, neither gives another guard of the same lock; and whoever
/// gets the next one sees everything that was done under the one before. A guard that is forgotten keeps the
/// lock for good.
pub unsafe trait Lock: Send + Sync {
    /// Holds the lock until it is dropped.
    type Guard<'a>
    where
        Self: 'a;

    /// A free lock for `threads` threads. More may use it; Anderson's lock then loses its property that
    /// each waits on a cache line of its own.
    fn new(threads: usize) -> Self
    where
        Self: Sized;

    /// Waits for the lock and takes it. A thread that holds it already waits for good.
    ///
    /// ```
    /// use steelyard_sync::{Lock, Mcs};
    ///
    /// let lock = Mcs::new(2);
    /// let held = lock.lock();
    /// assert!(lock.try_lock().is_none());
    /// drop(held);
    /// assert!(lock.try_lock().is_some());
    /// ```
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes the lock if it is free now.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

/// A lock whose guard is [`Held`]: what taking it gives is needed to release it.
///
/// # Safety
///
/// As for [`Lock`], from taking it until [`RawLock::release`].
pub unsafe trait RawLock: Send + Sync {
    /// What the holder must remember: a ticket or a place in the queue.
    type Token: Copy;

    /// A free lock for `threads` threads.
    fn with_threads(threads: usize) -> Self
    where
        Self: Sized;

    /// Waits for the lock and takes it.
    fn acquire(&self) -> Self::Token;

    /// Takes the lock if it is free now.
    fn try_acquire(&self) -> Option<Self::Token>;

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The calling thread has taken the lock and not released it, and `token` is what taking it gave.
    unsafe fn release(&self, token: Self::Token);
}

/// Holds a [`RawLock`] until it is dropped.
///
/// It stays with the thread that took the lock: POSIX leaves undefined what happens when another one unlocks
/// a mutex.
///
/// ```compile_fail,E0277
/// use steelyard_sync::{Lock, PthreadMutex};
///
/// let lock = PthreadMutex::new(2);
/// let held = lock.lock();
/// std::thread::scope(|scope| scope.spawn(move || drop(held)).join().unwrap());
/// ```
///
/// Nor does it outlive the lock:
///
/// ```compile_fail,E0505
/// use steelyard_sync::{Clh, Lock};
///
/// let lock = Clh::new(2);
/// let held = lock.lock();
/// drop(lock);
/// drop(held);
/// ```
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Held<'a, L: RawLock> {
    lock: &'a L,
    token: L::Token,
    /// Not `Send`.
    thread: PhantomData<*const ()>,
}

impl<'a, L: RawLock> Held<'a, L> {
    #[inline]
    fn new(lock: &'a L, token: L::Token) -> Self {
        Self { lock, token, thread: PhantomData }
    }
}

impl<L: RawLock> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard was made by taking the lock, has stayed with its thread and is dropped once.
        unsafe { self.lock.release(self.token) };
    }
}

// SAFETY: a guard is made by taking the lock only, and releases it when it is dropped.
unsafe impl<L: RawLock> Lock for L {
    type Guard<'a>
        = Held<'a, L>
    where
        L: 'a;

    fn new(threads: usize) -> Self {
        Self::with_threads(threads)
    }

    #[inline]
    fn lock(&self) -> Held<'_, L> {
        Held::new(self, self.acquire())
    }

    #[inline]
    fn try_lock(&self) -> Option<Held<'_, L>> {
        self.try_acquire().map(|token| Held::new(self, token))
    }
}

/// Name of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// [`TestAndSet`].
    TestAndSet,
    /// [`TestTestAndSet`].
    TestTestAndSet,
    /// [`Ticket`].
    Ticket,
    /// `std::sync::Mutex`.
    Std,
    /// `pthread_mutex_t`.
    Pthread,
    /// `parking_lot::Mutex`.
    ParkingLot,
    /// [`Anderson`].
    Anderson,
    /// [`Clh`].
    Clh,
    /// [`Mcs`].
    Mcs,
}

impl LockKind {
    /// Every lock, with its letter on the command line and its name.
    pub const ALL: [(char, Self, &'static str); 9] = [
        ('t', Self::TestAndSet, "TAS"),
        ('b', Self::TestTestAndSet, "TTAS + backoff"),
        ('k', Self::Ticket, "ticket"),
        ('s', Self::Std, "std mutex"),
        ('p', Self::Pthread, "pthread mutex"),
        ('g', Self::ParkingLot, "parking_lot"),
        ('a', Self::Anderson, "Anderson array"),
        ('c', Self::Clh, "CLH"),
        ('m', Self::Mcs, "MCS"),
    ];
}

/// Evaluates an expression with a type name bound to the lock of a kind.
#[cfg(not(loom))]
macro_rules! with_lock {
    ($kind:expr, $lock:ident => $body:expr) => {
        match $kind {
            $crate::LockKind::TestAndSet => {
                type $lock = $crate::TestAndSet;
                $body
            }
            $crate::LockKind::TestTestAndSet => {
                type $lock = $crate::TestTestAndSet;
                $body
            }
            $crate::LockKind::Ticket => {
                type $lock = $crate::Ticket;
                $body
            }
            $crate::LockKind::Std => {
                type $lock = $crate::StdMutex;
                $body
            }
            $crate::LockKind::Pthread => {
                type $lock = $crate::PthreadMutex;
                $body
            }
            $crate::LockKind::ParkingLot => {
                type $lock = $crate::ParkingLot;
                $body
            }
            $crate::LockKind::Anderson => {
                type $lock = $crate::Anderson;
                $body
            }
            $crate::LockKind::Clh => {
                type $lock = $crate::Clh;
                $body
            }
            $crate::LockKind::Mcs => {
                type $lock = $crate::Mcs;
                $body
            }
        }
    };
}
#[cfg(not(loom))]
pub(crate) use with_lock;

#[cfg(all(test, not(loom)))]
mod tests;
