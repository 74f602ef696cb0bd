use std::ptr;

use super::node::{self, Node, Place};
use super::raw::RawLock;
use crate::Padded;
use crate::atomic::{AcqRel, Acquire, AtomicPtr, Relaxed, Release};
use crate::wait::Moment;

/// State of a node whose thread has the lock.
const GRANTED: u32 = 2;

/// MCS queue lock: each thread waits on its own node, and the holder grants the lock to the next one.
/// First come, first served.
///
/// SOURCE: J. Mellor-Crummey and M. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
/// Multiprocessors", ACM TOCS 9(1), 1991, section 2.4.
#[derive(Debug)]
pub struct Mcs {
    /// The last node of the queue; null: the lock is free.
    tail: Padded<AtomicPtr<Padded<Node>>>,
}

/// The holder's node.
#[derive(Debug, Clone, Copy)]
pub struct McsPlace(Place);

// SAFETY: a taker enters when it finds no tail or is granted the lock, and only a release grants it or takes the tail away.
unsafe impl RawLock for Mcs {
    type Token = McsPlace;

    fn with_threads(_: usize) -> Self {
        Self { tail: Padded(AtomicPtr::new(ptr::null_mut())) }
    }

    #[inline]
    fn acquire(&self) -> McsPlace {
        let place = node::take();
        // ORDERING: Release publishes the node to the thread that comes next; Acquire pairs with its
        // like, so that the node of the thread before is complete, and with the Release that freed
        // the lock, so that what the last holder wrote is seen.
        let before = self.tail.swap(place.as_ptr(), AcqRel);
        if let Some(before) = Place::new(before) {
            // ORDERING: pairs with the Acquire in `next`: the node is complete.
            // SAFETY: the thread before does not give its node up before it has seen this link.
            unsafe { node::at(before) }.link.store(place.as_ptr(), Release);
            // SAFETY: it is our own node, and only we wait on it.
            unsafe { node::wait(place) };
        }
        McsPlace(place)
    }

    #[inline]
    fn try_acquire(&self) -> Option<McsPlace> {
        if !self.tail.load(Relaxed).is_null() {
            return None;
        }
        let place = node::take();
        // ORDERING: as in `acquire`.
        if self.tail.compare_exchange(ptr::null_mut(), place.as_ptr(), AcqRel, Relaxed).is_ok() {
            return Some(McsPlace(place));
        }
        // SAFETY: nobody else has seen it.
        unsafe { node::give_back(place) };
        None
    }

    #[inline]
    unsafe fn release(&self, McsPlace(place): McsPlace) {
        // ORDERING: pairs with the Release of the thread behind us, in `acquire`.
        // SAFETY: our own node.
        let mut next = unsafe { node::at(place) }.link.load(Acquire);
        if next.is_null() {
            // ORDERING: Release pairs with the Acquire of the next thread that finds the lock free.
            if self.tail.compare_exchange(place.as_ptr(), ptr::null_mut(), Release, Relaxed).is_ok() {
                // SAFETY: no longer in the queue, and nobody is behind us.
                unsafe { node::give_back(place) };
                return;
            }
            // SAFETY: somebody is behind us and about to link.
            next = unsafe { wait_for_link(place) };
        }
        if let Some(next) = Place::new(next) {
            // SAFETY: a thread waits on that node and keeps it until it is granted.
            unsafe { node::change(next, GRANTED) };
        }
        // SAFETY: the thread behind us has linked and does not look at our node again.
        unsafe { node::give_back(place) };
    }
}

/// Waits for the link of a thread that is known to be on its way: it has two instructions left, or it
/// has lost its core between them.
///
/// # Safety
///
/// The node is the caller's own and still in the queue.
#[cold]
unsafe fn wait_for_link(place: Place) -> *mut Padded<Node> {
    // SAFETY: passed on to the caller.
    let link = unsafe { &node::at(place).link };
    let mut moment = Moment::default();
    loop {
        // ORDERING: as in `release`.
        let next = link.load(Acquire);
        if !next.is_null() {
            return next;
        }
        moment.pass();
    }
}

// SAFETY: nodes are reached by several threads under the protocol above, as atomics only.
unsafe impl Send for Mcs {}
// SAFETY: as above.
unsafe impl Sync for Mcs {}
