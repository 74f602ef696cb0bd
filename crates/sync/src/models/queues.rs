use loom::sync::Arc;
use loom::thread;

use super::explore;
use crate::{Deque, Mpmc, Ring, Stolen};

fn values_pass_the_ring(depth: usize, count: u32, in_batches: bool) {
    explore(move || {
        let ring = Arc::new(Ring::new(depth));
        let other = Arc::clone(&ring);
        let producer = thread::spawn(move || {
            for value in 0..count {
                // SAFETY: this is the only producer.
                while unsafe { other.push(value) }.is_err() {
                    thread::yield_now();
                }
            }
            // SAFETY: as above.
            unsafe { other.flush() };
        });
        let mut expected = 0;
        let mut batch = [0; 2];
        while expected < count {
            let room = if in_batches { &mut batch[..] } else { &mut batch[..1] };
            // SAFETY: this is the only consumer.
            let taken = unsafe { ring.pop_batch(room) };
            for value in &batch[..taken] {
                assert_eq!(*value, expected);
                expected += 1;
            }
            if taken == 0 {
                thread::yield_now();
            }
        }
        producer.join().unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { ring.pop() }, None);
    });
}

#[test]
fn a_ring_of_one_slot_passes_values_in_order() {
    values_pass_the_ring(1, 3, false);
}

#[test]
fn a_ring_passes_batches_in_order() {
    values_pass_the_ring(2, 4, true);
}

#[test]
fn a_ring_passes_single_values() {
    explore(|| {
        let ring = Arc::new(Ring::new(2));
        let other = Arc::clone(&ring);
        // SAFETY: this is the only producer.
        let producer =
            thread::spawn(move || (0..3).filter(|&value| unsafe { other.push(value) }.is_ok()).count());
        let mut next = 0;
        for _ in 0..3 {
            // SAFETY: this is the only consumer.
            if let Some(value) = unsafe { ring.pop() } {
                assert_eq!(value, next);
                next += 1;
            }
        }
        let pushed = producer.join().unwrap();
        // SAFETY: as above.
        while let Some(value) = unsafe { ring.pop() } {
            assert!(value >= next);
            next = value + 1;
        }
        assert!(pushed >= 2);
    });
}

/// A full ring, of which one value is taken and published: whoever knows of that finds room.
#[test]
fn a_place_that_was_published_is_free_in_a_ring() {
    explore(|| {
        let ring = Arc::new(Ring::new(8));
        // SAFETY: this is the only producer.
        (0..8).for_each(|value| assert!(unsafe { ring.push(value) }.is_ok()));
        // SAFETY: as above.
        unsafe { ring.flush() };
        let other = Arc::clone(&ring);
        let consumer = thread::spawn(move || {
            // SAFETY: this is the only consumer.
            assert_eq!(unsafe { other.pop() }, Some(0));
            // SAFETY: as above.
            unsafe { other.flush_popped() };
        });
        // SAFETY: this is the only producer.
        let early = unsafe { ring.push(8) }.is_ok();
        consumer.join().unwrap();
        // SAFETY: as above.
        let late = unsafe { ring.push(9) }.is_ok();
        assert!(early != late);
    });
}

/// After its `pop` the owner of a deque of one place knows that nothing is inside, whoever has got the value.
#[test]
fn the_owner_of_an_empty_deque_finds_room() {
    explore(|| {
        let deque = Arc::new(Deque::<u64>::new(1));
        let other = Arc::clone(&deque);
        let thief = thread::spawn(move || match other.steal() {
            Stolen::Value(value) => value,
            Stolen::Empty | Stolen::Lost => 0,
        });
        let mut sum = 0;
        for value in [1, 10, 100] {
            // SAFETY: this is the owner.
            unsafe { deque.push(value) }.unwrap();
            // SAFETY: as above.
            sum += unsafe { deque.pop() }.unwrap_or(0);
        }
        assert_eq!(sum + thief.join().unwrap(), 111);
    });
}

/// The owner pushes two values and takes what it gets, a thief steals: each value goes to one of them.
#[test]
fn owner_and_thief_share_a_deque() {
    explore(|| {
        let deque = Arc::new(Deque::<u64>::new(2));
        let other = Arc::clone(&deque);
        let thief = thread::spawn(move || {
            let mut taken = Vec::new();
            for _ in 0..2 {
                if let Stolen::Value(value) = other.steal() {
                    taken.push(value);
                }
            }
            taken
        });
        let mut taken = Vec::new();
        for value in [1, 2] {
            // SAFETY: this is the owner.
            unsafe { deque.push(value) }.unwrap();
        }
        // SAFETY: as above.
        taken.extend(unsafe { deque.pop() });
        // SAFETY: as above.
        taken.extend(unsafe { deque.pop() });
        taken.extend(thief.join().unwrap());
        // SAFETY: as above.
        taken.extend(unsafe { deque.pop() });
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

/// Slots are written again while thieves read them.
#[test]
fn thieves_never_take_a_value_that_was_overwritten() {
    explore(|| {
        let deque = Arc::new(Deque::<u64>::new(1));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let other = Arc::clone(&deque);
                thread::spawn(move || match other.steal() {
                    Stolen::Value(value) => Some(value),
                    Stolen::Empty | Stolen::Lost => None,
                })
            })
            .collect();
        let mut sum = 0;
        let mut pushed = 0;
        for value in [1, 10] {
            // SAFETY: this is the owner.
            if unsafe { deque.push(value) }.is_ok() {
                pushed += value;
            }
        }
        for thief in thieves {
            sum += thief.join().unwrap().unwrap_or(0);
        }
        // SAFETY: as above.
        while let Some(value) = unsafe { deque.pop() } {
            sum += value;
        }
        assert_eq!(sum, pushed);
    });
}

#[test]
fn two_producers_and_a_consumer_share_a_queue() {
    explore(|| {
        let queue = Arc::new(Mpmc::new(1));
        let producers: Vec<_> = [1, 10]
            .into_iter()
            .map(|value| {
                let other = Arc::clone(&queue);
                thread::spawn(move || if other.push(value).is_ok() { value } else { 0 })
            })
            .collect();
        let mut sum = queue.pop().unwrap_or(0);
        let pushed: u32 = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        while let Some(value) = queue.pop() {
            sum += value;
        }
        assert!(pushed > 0);
        assert_eq!(sum, pushed);
    });
}

#[test]
fn a_producer_and_two_consumers_share_a_queue() {
    explore(|| {
        let queue = Arc::new(Mpmc::new(2));
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let other = Arc::clone(&queue);
                thread::spawn(move || other.pop().unwrap_or(0))
            })
            .collect();
        let mut pushed = 0;
        for value in [1, 10, 100] {
            if queue.push(value).is_ok() {
                pushed += value;
            }
        }
        let mut sum: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
        while let Some(value) = queue.pop() {
            sum += value;
        }
        assert_eq!(sum, pushed);
    });
}

/// Two threads, each of which pushes a value and then takes one: at most two values are inside, and whoever takes
/// one finds one. So no push may find the queue full, and no pop may find it empty.
fn whoever_pushes_finds_room_and_whoever_pops_a_value(depth: usize, turns: u32) {
    explore(move || {
        let queue = Arc::new(Mpmc::new(depth));
        let other = Arc::clone(&queue);
        let take_turns = move |queue: &Mpmc<u32>, value: u32| {
            (0..turns)
                .map(|_| {
                    queue.push(value).unwrap();
                    queue.pop().unwrap()
                })
                .sum::<u32>()
        };
        let thread = thread::spawn(move || take_turns(&other, 1));
        let sum = take_turns(&queue, 100) + thread.join().unwrap();
        assert_eq!(sum, 101 * turns);
        assert!(queue.is_empty());
    });
}

#[test]
fn a_queue_with_room_takes_every_value() {
    whoever_pushes_finds_room_and_whoever_pops_a_value(2, 2);
}

#[test]
fn a_queue_with_more_slots_than_depth_takes_every_value() {
    whoever_pushes_finds_room_and_whoever_pops_a_value(3, 2);
}
