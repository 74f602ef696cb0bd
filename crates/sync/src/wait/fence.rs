//! A pair of fences of which the frequent side costs nothing.
//!
//! Whoever goes to sleep announces it and then looks for work once more; whoever brings work writes it
//! and then looks for sleepers. Each side must have its write visible before its read, which takes a
//! full fence on both. Whoever releases a lock brings work, and does so each time; a thread sleeps before
//! a lock almost never. So the frequent side only keeps the compiler from swapping the two, and the rare side makes the
//! kernel execute a full fence on every core that executes this process: membarrier(2),
//! `MEMBARRIER_CMD_PRIVATE_EXPEDITED`. Without that system call both sides use a full fence.

#[cfg(any(loom, miri, tsan))]
mod system {
    pub(super) fn is_registered() -> bool {
        false
    }

    pub(super) fn can_register() -> bool {
        false
    }

    pub(super) fn fence_everywhere() {}
}

#[cfg(not(any(loom, miri, tsan)))]
mod system {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    const UNKNOWN: u8 = 0;
    const REGISTERED: u8 = 1;
    const REFUSED: u8 = 2;

    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes three integers and changes no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    #[inline]
    pub(super) fn is_registered() -> bool {
        STATE.load(Relaxed) == REGISTERED
    }

    /// Registers the process. Nobody has relied on a light fence without code before the first
    /// registration, because until then a light fence is a full one.
    pub(super) fn can_register() -> bool {
        if STATE.load(Relaxed) == UNKNOWN {
            let worked = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
            STATE.store(if worked { REGISTERED } else { REFUSED }, Relaxed);
        }
        is_registered()
    }

    pub(super) fn fence_everywhere() {
        // It cannot fail once registered; if it did, sleepers would miss their call.
        assert!(membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED), "membarrier failed after registration");
    }
}

#[cfg(not(loom))]
use std::sync::atomic::{Ordering, compiler_fence, fence};

#[cfg(loom)]
use loom::sync::atomic::fence;
#[cfg(loom)]
use std::sync::atomic::{Ordering, compiler_fence};

/// A full fence, for both sides where each has it seldom enough: a barrier on every core takes about
/// as long as a thousand of these, and interrupts whoever works there.
#[inline]
pub(crate) fn full() {
    // ORDERING: pairs with itself on the other side: of two threads that write and then read what the
    // other wrote, one sees the other.
    fence(Ordering::SeqCst);
}

/// The frequent side: between its write and its look for sleepers.
#[inline]
pub(crate) fn light() {
    if system::is_registered() {
        compiler_fence(Ordering::SeqCst);
    } else {
        // ORDERING: pairs with `heavy` of the thread that goes to sleep: one of both sees the other.
        fence(Ordering::SeqCst);
    }
}

/// The rare side: between its announcement and its last look for work.
pub(crate) fn heavy() {
    // ORDERING: pairs with `light` where that is a full fence; orders this thread's own announcement
    // before the system call in any case.
    fence(Ordering::SeqCst);
    if system::can_register() {
        system::fence_everywhere();
    }
}
