use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::*;

/// Mutual exclusion: increments that are not atomic are not lost.
fn count_under<L: Lock>(threads: usize, each: u64, slots: usize) {
    struct Counter(std::cell::UnsafeCell<u64>);
    // SAFETY: used under a lock only.
    unsafe impl Sync for Counter {}
    let lock = L::new(slots);
    let counter = Counter(std::cell::UnsafeCell::new(0));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (lock, counter) = (&lock, &counter);
            scope.spawn(move || {
                for round in 0..each {
                    // Both ways of taking, in turn.
                    let held = if (round + thread as u64).is_multiple_of(2) { lock.try_lock() } else { None };
                    let _held = held.unwrap_or_else(|| lock.lock());
                    // SAFETY: the lock is held.
                    unsafe { *counter.0.get() += 1 };
                    if round % 64 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(counter.0.into_inner(), each * threads as u64);
}

#[test]
fn no_increment_is_lost_with_more_threads_than_cores_and_slots() {
    let each = if cfg!(miri) { 20 } else { 5000 };
    for (_, kind, name) in LockKind::ALL {
        for (threads, slots) in [(1, 1), (2, 2), (8, 8), (8, 3)] {
            eprintln!("{name}, {threads} threads");
            with_lock!(kind, L => count_under::<L>(threads, each, slots));
        }
    }
}

fn try_gives_up_at_once<L: Lock>() {
    let lock = L::new(2);
    let held = lock.lock();
    for _ in 0..100 {
        assert!(lock.try_lock().is_none());
    }
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock().is_none()));
    });
    drop(held);
    for _ in 0..100 {
        assert!(lock.try_lock().is_some());
    }
    drop(lock.lock());
}

#[test]
fn every_lock_can_be_tried() {
    for (_, kind, _) in LockKind::ALL {
        with_lock!(kind, L => try_gives_up_at_once::<L>());
    }
}

fn sleeper_is_woken<L: Lock>() {
    let lock = L::new(4);
    let was_held = AtomicBool::new(true);
    let held = lock.lock();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let _held = lock.lock();
                assert!(!was_held.load(SeqCst));
            });
        }
        // Long enough for all of them to fall asleep, and for tries to leave the queue between them.
        for _ in 0..20 {
            assert!(lock.try_lock().is_none());
            thread::sleep(Duration::from_millis(1));
        }
        was_held.store(false, SeqCst);
        drop(held);
    });
}

#[test]
fn whoever_sleeps_before_a_lock_is_woken() {
    for (_, kind, _) in LockKind::ALL {
        with_lock!(kind, L => sleeper_is_woken::<L>());
    }
}

#[test]
fn nested_locks_each_have_their_place() {
    fn nested<L: Lock>() {
        let locks: Vec<L> = (0..5).map(|_| L::new(1)).collect();
        let mut held: Vec<_> = locks.iter().map(Lock::lock).collect();
        // Released in another order than taken.
        held.swap_remove(1);
        assert!(locks[1].try_lock().is_some());
        held.clear();
        assert!(locks.iter().all(|lock| lock.try_lock().is_some()));
    }
    for (_, kind, _) in LockKind::ALL {
        with_lock!(kind, L => nested::<L>());
    }
}

/// A guard may be forgotten in safe code. The lock then stays locked, and dropping it is no fault: of
/// destroying a mutex that is locked, `ThreadSanitizer` would tell.
#[test]
fn a_lock_may_be_dropped_whose_guard_was_forgotten() {
    fn forget<L: Lock>() {
        for _ in 0..3 {
            let lock = L::new(2);
            std::mem::forget(lock.lock());
            assert!(lock.try_lock().is_none());
            drop(lock);
            // Nothing is left behind for the next lock.
            drop(L::new(2).lock());
        }
    }
    for (_, kind, _) in LockKind::ALL {
        with_lock!(kind, L => forget::<L>());
    }
}

#[test]
fn letters_are_unique() {
    let letters: std::collections::BTreeSet<char> =
        LockKind::ALL.iter().map(|(letter, ..)| *letter).collect();
    assert_eq!(letters.len(), LockKind::ALL.len());
    assert!(!letters.contains(&'n'), "it stands for no lock");
}
