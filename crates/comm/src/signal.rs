//! Signals that ask an endpoint to end.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::CommError;

static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    if signal != libc::SIGALRM {
        RECEIVED.store(signal, Relaxed);
    }
    // A signal that comes between the last look at the flag and a blocking system call would go
    // unnoticed: another one follows every second. `alarm` may be called by a handler (POSIX.1).
    // SAFETY: the call takes a number of seconds and touches no memory.
    unsafe { libc::alarm(1) };
}

/// Installs the handlers. Blocking system calls return with `EINTR`.
pub(crate) fn install() -> Result<(), CommError> {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGALRM] {
        let handler: extern "C" fn(libc::c_int) = note;
        // SAFETY: an all-zero `sigaction` is valid: no flags, empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: `action` is valid for reading; the handler stores into an atomic and calls `alarm`.
        let answer = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        if answer != 0 {
            return Err(CommError::system("handling signals", io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Fails when a signal has come.
#[inline]
pub(crate) fn check() -> Result<(), CommError> {
    // The flag publishes nothing else.
    match RECEIVED.load(Relaxed) {
        0 => Ok(()),
        signal => Err(CommError::Interrupted { signal }),
    }
}
