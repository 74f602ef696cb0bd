//! What a thread brings to the queue of a queue lock.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::Padded;
use crate::atomic::{Acquire, AtomicPtr, Relaxed, Release};
use crate::wait::{Futex, Patience};

/// A place in a queue, alone on its cache lines. One thread at most waits on its state.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) state: Futex,
    pub(super) link: AtomicPtr<Padded<Node>>,
    /// Something while the node is taken: a model looks at each use, and at its end for what is left.
    #[cfg(loom)]
    life: loom::cell::UnsafeCell<Option<loom::alloc::Track<()>>>,
}

/// A node somewhere on the heap. Which thread may free it is a matter of the lock's protocol.
pub(super) type Place = NonNull<Padded<Node>>;

/// The state in which whoever waits on the node goes on waiting.
pub(super) const BUSY: u32 = 0;
/// The same, and the waiting thread sleeps.
const SLEEPING: u32 = 1;

// The node that this thread gave up last: the next lock it takes needs one.
#[cfg(not(loom))]
thread_local! {
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}
#[cfg(loom)]
loom::thread_local! {
    static SPARE: Cell<Option<Spare>> = Cell::new(None);
}

/// A node that nobody else can reach.
struct Spare(Place);

impl Drop for Spare {
    fn drop(&mut self) {
        // In a model the memory stays until the end: it is looked at who comes too late, and a late call to
        // wake may name it, which the kernel does not mind.
        #[cfg(not(loom))]
        // SAFETY: it came from a box, and nobody else can reach it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A node that is `BUSY`, without a link.
#[inline]
pub(super) fn take() -> Place {
    let place = match SPARE.try_with(Cell::take) {
        Ok(Some(spare)) => {
            let place = ManuallyDrop::new(spare).0;
            // SAFETY: nobody else can reach it.
            let node = unsafe { place.as_ref() };
            node.state.word.store(BUSY, Relaxed);
            node.link.store(ptr::null_mut(), Relaxed);
            place
        }
        _ => allocate(),
    };
    #[cfg(loom)]
    model::begin(place);
    place
}

#[cold]
fn allocate() -> Place {
    let place = NonNull::from(Box::leak(Box::new(Padded(Node {
        state: Futex::new(BUSY),
        link: AtomicPtr::new(ptr::null_mut()),
        #[cfg(loom)]
        life: loom::cell::UnsafeCell::new(None),
    }))));
    #[cfg(loom)]
    model::keep(place);
    place
}

/// Gives a node back.
///
/// # Safety
///
/// It came from [`take`], and no other thread can reach it any more.
#[inline]
pub(super) unsafe fn give_back(place: Place) {
    #[cfg(loom)]
    model::end(place);
    let spare = Spare(place);
    // A thread that is ending frees it.
    let _ = SPARE.try_with(|last| last.set(Some(spare)));
}

/// The node of a place.
///
/// # Safety
///
/// It came from [`take`], and under the protocol of its lock nobody can have given it back.
#[inline]
pub(super) unsafe fn at<'a>(place: Place) -> &'a Node {
    #[cfg(loom)]
    model::look(place);
    // SAFETY: passed on to the caller.
    unsafe { place.as_ref() }
}

/// What a model knows of nodes beyond the program.
#[cfg(loom)]
pub(crate) mod model {
    use std::cell::RefCell;

    use super::Place;

    std::thread_local! {
        /// Every node of an execution; its threads all belong to one of the system.
        static NODES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn keep(place: Place) {
        NODES.with_borrow_mut(|nodes| nodes.push(place));
    }

    /// Frees the nodes of the execution before.
    pub(crate) fn free_nodes() {
        for place in NODES.take() {
            // SAFETY: that execution has ended, and each of its nodes is here once.
            drop(unsafe { Box::from_raw(place.as_ptr()) });
        }
    }

    pub(super) fn begin(place: Place) {
        // SAFETY: here and below, the memory is kept; loom fails if this can happen beside another use.
        let node = unsafe { place.as_ref() };
        node.life.with_mut(|life| unsafe { *life = Some(loom::alloc::Track::new(())) });
    }

    pub(super) fn end(place: Place) {
        let node = unsafe { place.as_ref() };
        let life = node.life.with_mut(|life| unsafe { (*life).take() });
        assert!(life.is_some(), "a node is given back twice");
    }

    pub(super) fn look(place: Place) {
        let node = unsafe { place.as_ref() };
        let is_taken = node.life.with(|life| unsafe { (*life).is_some() });
        assert!(is_taken, "a node is used that was given back");
    }
}

/// Waits until the state of a node is neither `BUSY` nor `SLEEPING` and gives it.
///
/// # Safety
///
/// The node is there until this thread gives it back, and no other thread waits on it.
#[inline]
pub(super) unsafe fn wait(place: Place) -> u32 {
    // SAFETY: passed on to the caller.
    let state = unsafe { &at(place).state };
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
    #[cfg(loom)]
    model::look(place);
    // SAFETY: a pointer into the node, which is there.
    let futex = unsafe { &raw const (*place.as_ptr()).0.state };
    // SAFETY: as above. ORDERING: pairs with the Acquire in `wait`.
    let before = unsafe { (*futex).word.swap(state, Release) };
    if before == SLEEPING {
        // SAFETY: only the address counts from here on.
        unsafe { Futex::wake_address(futex) };
    }
}
