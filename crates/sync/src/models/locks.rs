use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::explore;
use crate::{Anderson, Clh, Lock, Mcs, RawLock, TestAndSet, TestTestAndSet, Ticket};

struct Guarded<L> {
    lock: L,
    count: UnsafeCell<u32>,
}

impl<L: RawLock> Guarded<L> {
    /// loom fails if two threads are in here at once, or if one does not see what the other wrote.
    fn enter(&self) {
        let _held = self.lock.lock();
        // SAFETY: the lock is held.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }

    fn try_enter(&self) -> bool {
        let Some(_held) = self.lock.try_lock() else { return false };
        // SAFETY: the lock is held.
        self.count.with_mut(|count| unsafe { *count += 1 });
        true
    }
}

fn guarded<L: RawLock>() -> Arc<Guarded<L>> {
    Arc::new(Guarded { lock: L::with_threads(2), count: UnsafeCell::new(0) })
}

/// Two threads; one enters twice, so that it also meets a lock that others have used.
fn two_threads_exclude_each_other<L: RawLock + 'static>() {
    explore(|| {
        let shared = guarded::<L>();
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || other.enter());
        shared.enter();
        shared.enter();
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(shared.count.with(|count| unsafe { *count }), 3);
    });
}

/// One thread tries while another one enters; the one that tried enters afterwards.
fn trying_disturbs_nobody<L: RawLock + 'static>() {
    explore(|| {
        let shared = guarded::<L>();
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || other.enter());
        let entered = shared.try_enter();
        shared.enter();
        thread.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(shared.count.with(|count| unsafe { *count }), 2 + u32::from(entered));
    });
}

/// Two threads that each take one lock and then another. The node that has left the queue of the first enters
/// that of the second, while others may still be about to wake whoever waited on it. loom also fails if a node is
/// used after it was given back, given back beside another use, or never.
fn nodes_are_used_again<L: RawLock + 'static>() {
    explore(|| {
        let shared = [guarded::<L>(), guarded::<L>()];
        let other = shared.clone();
        let thread = thread::spawn(move || other.iter().for_each(|guarded| guarded.enter()));
        shared.iter().for_each(|guarded| guarded.enter());
        thread.join().unwrap();
        for guarded in &shared {
            // SAFETY: the other thread has ended.
            assert_eq!(guarded.count.with(|count| unsafe { *count }), 2);
        }
    });
}

macro_rules! models {
    ($($name:ident: $lock:ty,)*) => {$(
        mod $name {
            #[test]
            fn two_threads_exclude_each_other() {
                super::two_threads_exclude_each_other::<$lock>();
            }

            #[test]
            fn trying_disturbs_nobody() {
                super::trying_disturbs_nobody::<$lock>();
            }
        }
    )*};
}

models! {
    test_and_set: super::TestAndSet,
    test_test_and_set: super::TestTestAndSet,
    ticket: super::Ticket,
    anderson: super::Anderson,
    clh: super::Clh,
    mcs: super::Mcs,
}

#[test]
fn nodes_of_clh_are_used_again() {
    nodes_are_used_again::<Clh>();
}

#[test]
fn nodes_of_mcs_are_used_again() {
    nodes_are_used_again::<Mcs>();
}

/// Each of three threads enters, so that one of them may have a neighbour on both sides.
fn three_threads_exclude_each_other<L: RawLock + 'static>() {
    explore(|| {
        let shared = guarded::<L>();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let other = Arc::clone(&shared);
                thread::spawn(move || other.enter())
            })
            .collect();
        shared.enter();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: the other threads have ended.
        assert_eq!(shared.count.with(|count| unsafe { *count }), 3);
    });
}

#[test]
fn three_threads_queue_in_clh() {
    three_threads_exclude_each_other::<Clh>();
}

#[test]
fn three_threads_queue_in_mcs() {
    three_threads_exclude_each_other::<Mcs>();
}

/// Two threads try behind a holder: each may leave the queue while the one before it leaves.
#[test]
fn two_threads_may_leave_the_queue_of_clh_at_once() {
    explore(|| {
        let shared = guarded::<Clh>();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let other = Arc::clone(&shared);
                thread::spawn(move || u32::from(other.try_enter()))
            })
            .collect();
        shared.enter();
        let entered: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        shared.enter();
        // SAFETY: the other threads have ended.
        assert_eq!(shared.count.with(|count| unsafe { *count }), 2 + entered);
    });
}
