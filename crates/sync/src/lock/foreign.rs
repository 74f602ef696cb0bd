//! Locks of others behind the same trait.

use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use parking_lot::lock_api::RawMutex as _;

use super::raw::{Lock, RawLock};
use crate::Padded;

/// `std::sync::Mutex`.
#[derive(Debug)]
pub struct StdMutex(Padded<Mutex<()>>);

// SAFETY: the guards are those of the standard library.
unsafe impl Lock for StdMutex {
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

// SAFETY: `lock` and `try_lock` exclude each other until `unlock`.
unsafe impl RawLock for ParkingLot {
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

/// `pthread_mutex_t` of the C library, of the kind `PTHREAD_MUTEX_NORMAL`: as the usual one, but a thread that
/// takes it twice waits for good, where POSIX leaves undefined what the usual one does.
#[derive(Debug)]
pub struct PthreadMutex(ManuallyDrop<Box<Padded<UnsafeCell<libc::pthread_mutex_t>>>>);

// SAFETY: a pthread mutex is made to be used by several threads; its memory does not move.
unsafe impl Send for PthreadMutex {}
// SAFETY: as above.
unsafe impl Sync for PthreadMutex {}

/// Stops the program where the C library refuses what it cannot refuse a mutex that is used as here: going on
/// would let two threads in.
#[inline]
fn require(code: libc::c_int, action: &str) {
    assert!(code == 0, "{action} failed: {}", std::io::Error::from_raw_os_error(code));
}

// SAFETY: `pthread_mutex_lock` and `pthread_mutex_trylock` exclude each other until `pthread_mutex_unlock`.
unsafe impl RawLock for PthreadMutex {
    type Token = ();

    fn with_threads(_: usize) -> Self {
        let mutex = Box::new(Padded(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: valid for writing.
        require(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) }, "pthread_mutexattr_init");
        let attributes = attributes.as_mut_ptr();
        // SAFETY: initialised above.
        let code = unsafe { libc::pthread_mutexattr_settype(attributes, libc::PTHREAD_MUTEX_NORMAL) };
        require(code, "pthread_mutexattr_settype");
        // SAFETY: nobody has used the mutex, and the attributes are initialised.
        require(unsafe { libc::pthread_mutex_init(mutex.get(), attributes) }, "pthread_mutex_init");
        // SAFETY: initialised above and not used any more.
        require(unsafe { libc::pthread_mutexattr_destroy(attributes) }, "pthread_mutexattr_destroy");
        Self(ManuallyDrop::new(mutex))
    }

    #[inline]
    fn acquire(&self) {
        // SAFETY: initialised, and alive as long as `self`.
        require(unsafe { libc::pthread_mutex_lock(self.0.get()) }, "pthread_mutex_lock");
    }

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        // SAFETY: as above.
        (unsafe { libc::pthread_mutex_trylock(self.0.get()) } == 0).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // SAFETY: as above, and the calling thread holds it.
        require(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, "pthread_mutex_unlock");
    }
}

impl Drop for PthreadMutex {
    fn drop(&mut self) {
        // A guard may have been forgotten. POSIX leaves undefined what happens when a locked mutex is destroyed,
        // so that one stays where it is.
        if self.try_acquire().is_some() {
            // SAFETY: taken by this thread just now.
            unsafe { self.release(()) };
            // SAFETY: free, and nobody can take or wait for it any more.
            unsafe { libc::pthread_mutex_destroy(self.0.get()) };
            // SAFETY: dropped once, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
