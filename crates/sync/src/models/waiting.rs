use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use super::explore;
use crate::wait::{Doorbell, Sleepers};

/// loom fails if the sleeper is never woken: then all threads wait.
#[test]
fn a_sleeper_is_woken_by_whoever_brings_work() {
    explore(|| {
        let shared = Arc::new((Doorbell::new(), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let bringer = thread::spawn(move || {
            let (bell, work) = &*other;
            work.store(1, Relaxed);
            if bell.wish().is_some() {
                bell.ring();
            }
        });
        let (bell, work) = &*shared;
        while work.load(Relaxed) == 0 {
            bell.sleep_unless(1, || work.load(Relaxed) != 0);
        }
        bringer.join().unwrap();
    });
}

/// Two sleepers on one word, and one waking that is meant for both.
#[test]
fn all_sleepers_are_woken_by_a_change() {
    explore(|| {
        let shared = Arc::new(Sleepers::new(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let other = Arc::clone(&shared);
                thread::spawn(move || {
                    other.wait_until(|word| match word.load(Relaxed) {
                        0 => Err(0),
                        _ => Ok(()),
                    });
                })
            })
            .collect();
        shared.word().store(1, Relaxed);
        shared.wake(u32::MAX);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}
