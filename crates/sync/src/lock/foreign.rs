//! Locks of others behind the same trait.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use parking_lot::lock_api::RawMutex as _;

use super::{Lock, RawLock};
use crate::Padded;

/// `std::sync::Mutex`.
#[derive(Debug)]
pub struct StdMutex(Padded<Mutex<()>>);

impl Lock for StdMutex {
    type Guard<'a> = MutexGuard<'a, ()>;

    fn new(_: usize) -> Self {
        Self(Padded(Mutex::new(())))
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, ()> {
        // There is nothing inside that a panic could have left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, ()>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// `parking_lot::Mutex`.
pub struct ParkingLot(Padded<parking_lot::RawMutex>);

impl std::fmt::Debug for ParkingLot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ParkingLot").finish_non_exhaustive()
    }
}

impl RawLock for ParkingLot {
    type Token = ();

    fn with_threads(_: usize) -> Self {
        Self(Padded(parking_lot::RawMutex::INIT))
    }

    #[inline]
    fn acquire(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        self.0.try_lock().then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock() };
    }
}

/// `pthread_mutex_t` of the C library with its usual attributes.
#[derive(Debug)]
pub struct PthreadMutex(Box<Padded<UnsafeCell<libc::pthread_mutex_t>>>);

// SAFETY: a pthread mutex is made to be used by several threads; its memory does not move.
unsafe impl Send for PthreadMutex {}
// SAFETY: as above.
unsafe impl Sync for PthreadMutex {}

impl RawLock for PthreadMutex {
    type Token = ();

    fn with_threads(_: usize) -> Self {
        Self(Box::new(Padded(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))))
    }

    #[inline]
    fn acquire(&self) {
        // SAFETY: initialised, and alive as long as `self`. The usual kind of mutex reports no error.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        // SAFETY: as above.
        (unsafe { libc::pthread_mutex_trylock(self.0.get()) } == 0).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // SAFETY: as above, and the caller holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for PthreadMutex {
    fn drop(&mut self) {
        // SAFETY: nobody can hold or wait for it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}
