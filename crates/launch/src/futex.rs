//! Waiting for a word in shared memory.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use nix::sys::time::TimeSpec;

/// Sleeps while `word` is `expected`, at most for `timeout`. Returns early for any reason: the
/// caller looks at the word again.
///
/// The word may be in memory that several processes share.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let limit = timeout.map(TimeSpec::from_duration);
    let limit = limit.as_ref().map_or(ptr::null(), |spec| ptr::from_ref(spec.as_ref()));
    // SAFETY: the word outlives the call, the timeout is null or a valid timespec.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit, 0, 0);
    }
}

/// Wakes everyone who waits for `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0);
    }
}

/// Memory shared with processes that are forked later, zeroed.
pub(crate) fn map_shared(length: usize, descriptor: Option<i32>) -> io::Result<*mut libc::c_void> {
    let (flags, descriptor) = match descriptor {
        Some(descriptor) => (libc::MAP_SHARED, descriptor),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let address = unsafe {
        libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, 0)
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address) }
}

/// Undoes [`map_shared`].
///
/// # Safety
///
/// `address` and `length` are those of a mapping that nobody uses any more.
pub(crate) unsafe fn unmap(address: *mut libc::c_void, length: usize) {
    // SAFETY: by the contract above.
    unsafe {
        libc::munmap(address, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::thread;

    #[test]
    fn a_wait_ends_at_its_timeout_and_at_a_change() {
        let word = AtomicU32::new(0);
        wait(&word, 0, Some(Duration::from_millis(1)));
        wait(&word, 1, None);
        thread::scope(|scope| {
            scope.spawn(|| {
                // ORDERING: pairs with the load below.
                word.store(1, Ordering::Release);
                wake_all(&word);
            });
            while word.load(Ordering::Acquire) == 0 {
                wait(&word, 0, Some(Duration::from_secs(1)));
            }
        });
    }
}
