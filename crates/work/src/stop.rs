use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::WorkError;

static SIGNALLED: AtomicBool = AtomicBool::new(false);

/// Tells an endless loop when to end: its time is over, a signal came, or its parent is gone.
#[derive(Debug)]
pub(crate) struct StopCondition {
    end: Instant,
    parent: i32,
}

impl StopCondition {
    /// Arms the condition.
    ///
    /// A handler is installed even though ending is the default of these signals: the first
    /// process of a PID namespace is not ended by a signal it has no handler for.
    pub(crate) fn arm(longest: Duration) -> Result<Self, WorkError> {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            install(signal)?;
        }
        // SAFETY: `getppid` has no preconditions and cannot fail.
        let parent = unsafe { libc::getppid() };
        if parent == 0 {
            // The parent lives outside this PID namespace and cannot be watched by its number.
            // Elsewhere the number is watched instead, because this signal comes already when the
            // parent's *thread* that started us ends.
            // SAFETY: the operation takes one number and touches no memory.
            let answer = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            if answer != 0 {
                return Err(WorkError::system("asking for a signal at the parent's death"));
            }
        }
        Ok(Self { end: Instant::now() + longest, parent })
    }

    /// Whether it is time.
    pub(crate) fn is_met(&self) -> bool {
        // SAFETY: `getppid` has no preconditions and cannot fail.
        let parent = unsafe { libc::getppid() };
        SIGNALLED.load(Ordering::Relaxed) || parent != self.parent || Instant::now() >= self.end
    }
}

extern "C" fn note_signal(_: libc::c_int) {
    SIGNALLED.store(true, Ordering::Relaxed);
}

fn install(signal: libc::c_int) -> Result<(), WorkError> {
    let handler: extern "C" fn(libc::c_int) = note_signal;
    // SAFETY: an all-zero `sigaction` is valid: no flags, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: `action` is valid for reading; the handler only stores into an atomic.
    let answer = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    if answer == 0 { Ok(()) } else { Err(WorkError::system(format!("handling signal {signal}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_ends_it() {
        let stop = StopCondition::arm(Duration::from_millis(20)).unwrap();
        assert!(!stop.is_met());
        std::thread::sleep(Duration::from_millis(25));
        assert!(stop.is_met());
    }
}
