//! A word on which threads sleep until it changes.

#[cfg(not(loom))]
use std::time::Duration;

use crate::atomic::AtomicU32;

/// A 32-bit word with futex(2). A model replaces the system call by a mutex and a condition, which
/// have the property that matters: looking at the word and falling asleep are one step.
#[derive(Debug)]
#[cfg_attr(not(loom), repr(transparent))]
pub(crate) struct Futex {
    pub(crate) word: AtomicU32,
    #[cfg(loom)]
    model: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

#[cfg(not(loom))]
impl Futex {
    pub(crate) const fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value) }
    }

    /// Sleeps while the word is `expected`; may return for no reason.
    #[cold]
    pub(crate) fn sleep_while(&self, expected: u32) {
        call(self.word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, expected, None);
    }

    /// The same, for a time at most.
    #[cold]
    pub(crate) fn sleep_while_for(&self, expected: u32, longest: Duration) {
        call(self.word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, expected, Some(longest));
    }

    /// Wakes up to `count` sleepers.
    #[cold]
    pub(crate) fn wake(&self, count: u32) {
        let count = count.min(i32::MAX.unsigned_abs());
        call(self.word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count, None);
    }

    /// Wakes one sleeper of a futex that may be gone: then nobody sleeps there, or somebody who looks
    /// again after waking.
    ///
    /// # Safety
    ///
    /// `futex` was valid once.
    #[cold]
    pub(crate) unsafe fn wake_address(futex: *const Self) {
        let word = futex.cast::<u32>().cast_mut();
        call(word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1, None);
    }
}

#[cfg(not(loom))]
fn call(word: *mut u32, operation: libc::c_int, value: u32, longest: Option<Duration>) {
    let limit = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs().cast_signed(),
        tv_nsec: longest.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel checks the address, and the limit is null or lives until the call returns. Every
    // error means that the word has changed, that a signal came or that time is over, after which
    // callers look again.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, value, limit) };
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), model: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()) }
    }

    pub(crate) fn sleep_while(&self, expected: u32) {
        let (mutex, condition) = &self.model;
        let held = mutex.lock().unwrap();
        if self.word.load(crate::atomic::Relaxed) == expected {
            drop(condition.wait(held).unwrap());
        }
    }

    pub(crate) fn wake(&self, count: u32) {
        let (mutex, condition) = &self.model;
        let held = mutex.lock().unwrap();
        if count == 1 {
            condition.notify_one()
        } else {
            condition.notify_all()
        }
        drop(held);
    }

    /// # Safety
    ///
    /// `futex` is valid.
    pub(crate) unsafe fn wake_address(futex: *const Self) {
        // SAFETY: passed on to the caller; a model keeps the memory of nodes, of which only the address counts.
        unsafe { &*futex }.wake(1);
    }
}
