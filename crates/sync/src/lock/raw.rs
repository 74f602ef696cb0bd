//! What a lock promises, and the guard that holds it.

use std::marker::PhantomData;

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
