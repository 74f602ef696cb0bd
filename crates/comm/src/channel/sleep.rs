//! Waiting for a word in shared memory: first looking, then sleeping by futex(2).

use std::io;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
    compiler_fence, fence,
};

use crate::CommError;
use crate::clock::now_ns;
use crate::signal;

/// Looks between two readings of the clock.
const LOOKS: u32 = 64;
/// An endpoint that waits longer than this sleeps [ns]. Being woken takes 5 to 50 us, so a message that
/// comes later than this pays little of its time for it.
pub(crate) const SPIN_NS: u64 = 200_000;
/// After so long a sleeper looks whether the other endpoint lives [ns].
const LONGEST_SLEEP_NS: i64 = 20_000_000;

/// KERNEL: membarrier(2), Linux 4.16: a full barrier on every core that executes a registered process.
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// How the sleeper and the one who wakes it see each other's last store: the sleeper announces itself and
/// looks at the word, the other one changes the word and looks for an announcement. One of the two looks
/// must see the other's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The rare sleeper makes both sides execute a barrier: sending costs none.
    Sleeper,
    /// Both sides execute a barrier each time.
    Both,
}

impl Barrier {
    /// Registers this process; says `Both` where the kernel refuses.
    pub(crate) fn register() -> Self {
        match membarrier(REGISTER_GLOBAL_EXPEDITED) {
            0 => Self::Sleeper,
            _ => Self::Both,
        }
    }

    /// Between announcing and the last look.
    fn heavy(self) {
        // ORDERING: SeqCst: pairs with the fence, or the absence of reordering, in `light`.
        fence(SeqCst);
        if self == Self::Sleeper {
            membarrier(GLOBAL_EXPEDITED);
        }
    }

    /// Between changing the word and looking for an announcement.
    #[inline]
    fn light(self) {
        match self {
            // ORDERING: SeqCst for the compiler; the core's part is done by the sleeper's membarrier.
            Self::Sleeper => compiler_fence(SeqCst),
            // ORDERING: SeqCst: pairs with the fence in `heavy`.
            Self::Both => fence(SeqCst),
        }
    }
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes numbers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// How an endpoint waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) barrier: Barrier,
    pub(crate) patience: Patience,
}

/// What an endpoint does before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Looks: the other endpoint has a CPU of its own.
    Spin,
    /// Looks and offers its CPU, which the other endpoint may happen to need.
    Offer,
    /// Nothing: the other endpoint needs this CPU.
    None,
}

/// Tells whether the other endpoint lives.
pub(crate) trait Lifeline {
    /// Fails when it is gone.
    fn check(&self) -> Result<(), CommError>;
}

/// Waits until the word is one that is wanted, and gives it. `asleep` is this waiter's announcement.
#[inline]
pub(crate) fn wait_for(
    word: &AtomicU32,
    asleep: &AtomicU32,
    manner: Manner,
    lifeline: &impl Lifeline,
    is_wanted: impl Fn(u32) -> bool,
) -> Result<u32, CommError> {
    // ORDERING: Acquire: pairs with the Release of whoever publishes the word.
    let found = word.load(Acquire);
    if is_wanted(found) {
        return Ok(found);
    }
    if manner.patience == Patience::None {
        return sleep_for(word, asleep, manner, lifeline, is_wanted);
    }
    let end_ns = now_ns() + SPIN_NS;
    loop {
        for _ in 0..LOOKS {
            // ORDERING: Acquire: as above.
            let found = word.load(Acquire);
            if is_wanted(found) {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        if manner.patience == Patience::Offer {
            std::thread::yield_now();
        }
        if now_ns() >= end_ns {
            return sleep_for(word, asleep, manner, lifeline, is_wanted);
        }
    }
}

#[cold]
fn sleep_for(
    word: &AtomicU32,
    asleep: &AtomicU32,
    manner: Manner,
    lifeline: &impl Lifeline,
    is_wanted: impl Fn(u32) -> bool,
) -> Result<u32, CommError> {
    loop {
        asleep.store(1, Relaxed);
        manner.barrier.heavy();
        // ORDERING: Acquire: as in `wait_for`.
        let found = word.load(Acquire);
        if is_wanted(found) {
            asleep.store(0, Relaxed);
            return Ok(found);
        }
        let woke = futex(word, libc::FUTEX_WAIT, found);
        asleep.store(0, Relaxed);
        #[cfg(test)]
        if !woke && is_wanted(word.load(Relaxed)) {
            LATE.set(LATE.get() + 1);
        }
        #[cfg(not(test))]
        let _ = woke;
        signal::check()?;
        // ORDERING: Acquire: as in `wait_for`. What came before the other one ended counts.
        let found = word.load(Acquire);
        if is_wanted(found) {
            return Ok(found);
        }
        lifeline.check()?;
    }
}

/// Wakes the waiter if it has announced that it sleeps; to be called after the word was stored.
#[inline]
pub(crate) fn wake(word: &AtomicU32, asleep: &AtomicU32, manner: Manner) {
    manner.barrier.light();
    if asleep.load(Relaxed) != 0 {
        futex(word, libc::FUTEX_WAKE, 1);
    }
}

/// The word lies in memory of two processes, so the futex is not a private one. Says false when time is over.
#[cold]
fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) -> bool {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: LONGEST_SLEEP_NS };
    // SAFETY: the word and the limit are valid until the call returns. Every error means that the word has
    // changed, that a signal came or that time is over, after which the waiter looks again.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const limit) };
    answer >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::TimedOut
}

#[cfg(test)]
thread_local! {
    /// Sleeps of this thread that ended by their limit although the word had changed: nobody woke it.
    pub(super) static LATE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A socket whose other end the other endpoint holds and never writes to.
impl Lifeline for std::os::unix::net::UnixStream {
    fn check(&self) -> Result<(), CommError> {
        use std::os::fd::AsRawFd;
        let mut byte = 0_u8;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: one byte is valid for writing.
        let count = unsafe { libc::recv(self.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
        match count {
            0 => Err(CommError::lost("it ended")),
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::ConnectionReset => {
                Err(CommError::lost("it ended"))
            }
            _ => Ok(()),
        }
    }
}
