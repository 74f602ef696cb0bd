//! Signals that ask a process to end.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::LoadError;

static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Relaxed);
}

/// Installs the handlers. Blocking system calls return with `EINTR`; whoever waits, waits for at most
/// 100 ms at a time, so that a signal between a look at the flag and a call is noticed, too.
pub(crate) fn install() -> Result<(), LoadError> {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let handler: extern "C" fn(libc::c_int) = note;
        // SAFETY: an all-zero `sigaction` is valid: no flags, empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: `action` is valid for reading; the handler stores into an atomic.
        let answer = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        if answer != 0 {
            return Err(LoadError::last("handling signals"));
        }
    }
    Ok(())
}

/// Whether a signal has come.
#[inline]
pub(crate) fn is_asked_to_end() -> bool {
    RECEIVED.load(Relaxed) != 0
}

/// Fails when a signal has come.
pub(crate) fn check() -> Result<(), LoadError> {
    // The flag publishes nothing else.
    match RECEIVED.load(Relaxed) {
        0 => Ok(()),
        signal => Err(LoadError::Interrupted { signal }),
    }
}
