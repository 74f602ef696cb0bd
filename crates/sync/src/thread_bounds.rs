//! Which types may leave their thread or be shared between threads: a bound that is too wide lets safe code reach
//! undefined behaviour, and no other test would notice.

use std::marker::PhantomData;

use crate::lock::with_lock;
use crate::{Consumer, Deque, DequeOwner, Lock, LockKind, Mpmc, Producer, Ring, Thief, Word};

/// Asks for the bounds of a type: where one holds, the constant of the type hides that of the trait.
struct Bounds<T>(PhantomData<T>);

trait Otherwise {
    const IS_SEND: bool = false;
    const IS_SYNC: bool = false;
}

impl<T> Otherwise for Bounds<T> {}

impl<T: Send> Bounds<T> {
    const IS_SEND: bool = true;
}

impl<T: Sync> Bounds<T> {
    const IS_SYNC: bool = true;
}

/// A value that must stay with its thread.
#[derive(Clone, Copy)]
struct Bound(PhantomData<*const ()>);

impl Word for Bound {
    fn to_word(self) -> u64 {
        0
    }

    fn from_word(_: u64) -> Self {
        Self(PhantomData)
    }
}

#[test]
fn the_question_can_be_answered_both_ways() {
    const {
        assert!(Bounds::<u8>::IS_SEND && Bounds::<u8>::IS_SYNC);
        assert!(!Bounds::<Bound>::IS_SEND && !Bounds::<Bound>::IS_SYNC);
        assert!(Bounds::<std::cell::Cell<u8>>::IS_SEND && !Bounds::<std::cell::Cell<u8>>::IS_SYNC);
    }
}

#[test]
fn no_guard_leaves_the_thread_that_took_the_lock() {
    for (_, kind, name) in LockKind::ALL {
        let (lock, guard) = with_lock!(kind, L => {
            (Bounds::<L>::IS_SEND && Bounds::<L>::IS_SYNC, Bounds::<<L as Lock>::Guard<'static>>::IS_SEND)
        });
        assert!(lock && !guard, "{name}");
    }
}

#[test]
fn queues_and_their_ends_leave_a_thread_if_their_values_may() {
    const {
        assert!(
            Bounds::<Mpmc<u64>>::IS_SYNC && Bounds::<Ring<u64>>::IS_SYNC && Bounds::<Deque<u64>>::IS_SYNC
        );
        assert!(Bounds::<Producer<'static, u64>>::IS_SEND && Bounds::<Consumer<'static, u64>>::IS_SEND);
        assert!(Bounds::<DequeOwner<'static, u64>>::IS_SEND && Bounds::<Thief<'static, u64>>::IS_SEND);
        assert!(!Bounds::<Mpmc<Bound>>::IS_SEND && !Bounds::<Mpmc<Bound>>::IS_SYNC);
        assert!(!Bounds::<Ring<Bound>>::IS_SEND && !Bounds::<Ring<Bound>>::IS_SYNC);
        assert!(!Bounds::<Deque<Bound>>::IS_SEND && !Bounds::<Deque<Bound>>::IS_SYNC);
        assert!(!Bounds::<Producer<'static, Bound>>::IS_SEND && !Bounds::<Consumer<'static, Bound>>::IS_SEND);
        assert!(!Bounds::<DequeOwner<'static, Bound>>::IS_SEND && !Bounds::<Thief<'static, Bound>>::IS_SEND);
    }
}
