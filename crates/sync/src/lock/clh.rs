use super::node::{self, Node, Place};
use super::raw::RawLock;
use crate::Padded;
use crate::atomic::{AcqRel, Acquire, AtomicPtr, Relaxed};

/// State of a node whose thread has released the lock.
const FREE: u32 = 2;
/// State of a node whose thread did not want to wait: its link is whom to wait for instead.
const LEFT: u32 = 3;

/// CLH queue lock: each thread waits on the node of the thread before it, and takes that node over.
/// First come, first served.
///
/// `try_lock` queues, and leaves the queue again if the lock is taken: it puts the node before it
/// back if nobody came meanwhile; otherwise it tells the one behind whom to wait for.
///
/// SOURCE: T. Craig, University of Washington TR 93-02-02, 1993; A. Landin and E. Hagersten, IPPS
/// 1994; leaving the queue: M. Scott, "Non-blocking Timeout in Scalable Queue-based Spin Locks",
/// PODC 2002, section 2.
#[derive(Debug)]
pub struct Clh {
    /// The node of the thread that came last, never null.
    tail: Padded<AtomicPtr<Padded<Node>>>,
}

/// The holder's node.
#[derive(Debug, Clone, Copy)]
pub struct ClhPlace(Place);

impl Clh {
    /// Queues, and gives the own node and the one before.
    #[inline]
    fn enqueue(&self) -> (Place, Place) {
        let place = node::take();
        // ORDERING: Release publishes the node to the thread that comes next; Acquire pairs with its
        // like, so that the node before is complete.
        let before = self.tail.swap(place.as_ptr(), AcqRel);
        (place, Place::new(before).unwrap_or(place))
    }
}

/// Whom a node that is `LEFT` names; the node is given back.
///
/// # Safety
///
/// The caller is behind that node and has seen it `LEFT`, so that it belongs to nobody else.
unsafe fn take_over(left: Place) -> Place {
    // The link was written before the state, and whoever saw the state sees it.
    // SAFETY: passed on to the caller.
    let link = unsafe { node::at(left) }.link.load(Relaxed);
    // SAFETY: passed on to the caller.
    unsafe { node::give_back(left) };
    // A node that is left always names one.
    Place::new(link).unwrap_or(left)
}

// SAFETY: a taker enters when the node before it is free, and its own node is free only after its release.
unsafe impl RawLock for Clh {
    type Token = ClhPlace;

    fn with_threads(_: usize) -> Self {
        let first = node::take();
        // SAFETY: nobody waits yet.
        unsafe { node::change(first, FREE) };
        Self { tail: Padded(AtomicPtr::new(first.as_ptr())) }
    }

    #[inline]
    fn acquire(&self) -> ClhPlace {
        let (place, mut before) = self.enqueue();
        // SAFETY: we are the only one behind that node, and it stays until we give it back.
        while unsafe { node::wait(before) } == LEFT {
            // SAFETY: as above, and it is left.
            before = unsafe { take_over(before) };
        }
        // SAFETY: its thread has released the lock and forgotten it; only we knew it as well.
        unsafe { node::give_back(before) };
        ClhPlace(place)
    }

    #[inline]
    fn try_acquire(&self) -> Option<ClhPlace> {
        let (place, mut before) = self.enqueue();
        loop {
            // ORDERING: pairs with the Release in `node::change`: what the last holder wrote is seen.
            // SAFETY: we are the only one behind that node, and it stays until we give it back.
            match unsafe { node::at(before) }.state.word.load(Acquire) {
                FREE => {
                    // SAFETY: as in `acquire`.
                    unsafe { node::give_back(before) };
                    return Some(ClhPlace(place));
                }
                // SAFETY: as in `acquire`.
                LEFT => before = unsafe { take_over(before) },
                _ => break,
            }
        }
        self.leave(place, before);
        None
    }

    #[inline]
    unsafe fn release(&self, ClhPlace(place): ClhPlace) {
        // SAFETY: our own node; from here on it belongs to the thread behind us, or to the lock.
        unsafe { node::change(place, FREE) };
    }
}

impl Clh {
    /// Leaves the queue between `before` and whoever came since.
    fn leave(&self, place: Place, before: Place) {
        // ORDERING: Release publishes the node before to the thread that finds it as the tail next. We
        // have acquired it when we queued. Acquire pairs with the Release of a thread that came behind us and
        // left before us: it has looked at our node, which is given back here.
        if self.tail.compare_exchange(place.as_ptr(), before.as_ptr(), AcqRel, Relaxed).is_ok() {
            // SAFETY: it is out of the queue, and whoever knew it has left.
            unsafe { node::give_back(place) };
            return;
        }
        // SAFETY: our own node. The link is published by the change of state.
        unsafe { node::at(place) }.link.store(before.as_ptr(), Relaxed);
        // SAFETY: our own node; from here on it belongs to the thread behind us.
        unsafe { node::change(place, LEFT) };
    }
}

impl Drop for Clh {
    fn drop(&mut self) {
        let mut last = Place::new(self.tail.load(Relaxed));
        while let Some(place) = last {
            // SAFETY: nobody uses the lock any more, and the tail and what it names belong to it.
            let state = unsafe { node::at(place) }.state.word.load(Relaxed);
            // `BUSY` where a guard was forgotten: its holder cannot come back.
            last = None;
            if state == LEFT {
                // SAFETY: as above.
                last = Place::new(unsafe { node::at(place) }.link.load(Relaxed));
            }
            // SAFETY: as above.
            unsafe { node::give_back(place) };
        }
    }
}

// SAFETY: nodes are reached by several threads under the protocol above, as atomics only.
unsafe impl Send for Clh {}
// SAFETY: as above.
unsafe impl Sync for Clh {}
