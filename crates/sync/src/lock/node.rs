//! What a thread brings to the queue of a queue lock.

use std::ptr::{self, NonNull};

use crate::Padded;
use crate::atomic::{Acquire, AtomicPtr, Relaxed, Release};
use crate::wait::{Futex, Patience};

/// A place in a queue, alone on its cache lines. One thread at most waits on its state.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) state: Futex,
    pub(super) link: AtomicPtr<Padded<Node>>,
}

/// A node somewhere on the heap. Which thread may free it is a matter of the lock's protocol.
pub(super) type Place = NonNull<Padded<Node>>;

/// The state in which whoever waits on the node goes on waiting.
pub(super) const BUSY: u32 = 0;
/// The same, and the waiting thread sleeps.
const SLEEPING: u32 = 1;

#[cfg(not(loom))]
thread_local! {
    /// The node that this thread gave up last: the next lock it takes needs one.
    static SPARE: std::cell::Cell<Option<Box<Padded<Node>>>> = const { std::cell::Cell::new(None) };
}

/// A node that is `BUSY`, without a link.
#[inline]
pub(super) fn take() -> Place {
    #[cfg(not(loom))]
    if let Ok(Some(node)) = SPARE.try_with(std::cell::Cell::take) {
        node.state.word.store(BUSY, Relaxed);
        node.link.store(ptr::null_mut(), Relaxed);
        return NonNull::from(Box::leak(node));
    }
    let node = Padded(Node { state: Futex::new(BUSY), link: AtomicPtr::new(ptr::null_mut()) });
    NonNull::from(Box::leak(Box::new(node)))
}

/// Gives a node back.
///
/// # Safety
///
/// It came from [`take`], and no other thread can reach it any more.
#[inline]
pub(super) unsafe fn give_back(place: Place) {
    // In a model nodes are left alone: a late call to wake may still name one, which the kernel does
    // not mind but a model does.
    #[cfg(not(loom))]
    {
        // SAFETY: passed on to the caller.
        let node = unsafe { Box::from_raw(place.as_ptr()) };
        // A thread that is ending frees it.
        let _ = SPARE.try_with(|spare| spare.set(Some(node)));
    }
    #[cfg(loom)]
    let _ = place;
}

/// Waits until the state of a node is neither `BUSY` nor `SLEEPING` and gives it.
///
/// # Safety
///
/// The node is there until this thread gives it back, and no other thread waits on it.
#[inline]
pub(super) unsafe fn wait(place: Place) -> u32 {
    // SAFETY: passed on to the caller.
    let state = unsafe { &place.as_ref().state };
    // ORDERING: pairs with the Release in `change`: what was written before the change is seen.
    let first = state.word.load(Acquire);
    if first == BUSY { wait_long(state) } else { first }
}

#[cold]
fn wait_long(state: &Futex) -> u32 {
    // ORDERING: here and below as in `wait`.
    if Patience::USUAL.wait(|| state.word.load(Acquire) != BUSY) {
        return state.word.load(Acquire);
    }
    if let Err(changed) = state.word.compare_exchange(BUSY, SLEEPING, Acquire, Acquire) {
        return changed;
    }
    loop {
        state.sleep_while(SLEEPING);
        let now = state.word.load(Acquire);
        if now != SLEEPING {
            return now;
        }
    }
}

/// Changes the state for whoever waits on the node, and wakes him.
///
/// # Safety
///
/// The node is there until its state changes; it may be gone right afterwards.
#[inline]
pub(super) unsafe fn change(place: Place, state: u32) {
    // SAFETY: a pointer into the node, which is there.
    let futex = unsafe { &raw const (*place.as_ptr()).0.state };
    // SAFETY: as above. ORDERING: pairs with the Acquire in `wait`.
    let before = unsafe { (*futex).word.swap(state, Release) };
    if before == SLEEPING {
        // SAFETY: only the address counts from here on.
        unsafe { Futex::wake_address(futex) };
    }
}
