use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::*;

#[test]
fn a_ring_of_any_depth_is_full_exactly_at_its_depth() {
    for depth in [1, 2, 3, 5, 8, 31, 32] {
        let mut ring = Ring::new(depth);
        let (mut producer, mut consumer) = ring.split();
        for lap in 0..3 {
            for value in 0..depth {
                producer.push(lap * 100 + value).unwrap();
            }
            // A push that finds no room publishes what is inside.
            assert_eq!(producer.push(7), Err(Full(7)));
            for value in 0..depth {
                assert_eq!(consumer.pop(), Some(lap * 100 + value));
            }
            assert_eq!(consumer.pop(), None);
        }
    }
}

#[test]
#[should_panic(expected = "without room")]
fn a_ring_without_room_is_refused() {
    let _ = Ring::<u8>::new(0);
}

#[test]
fn nothing_is_lost_doubled_or_reordered_between_threads() {
    let count = if cfg!(miri) { 200 } else { 50_000 };
    for depth in [1, 3, 32] {
        let mut ring = Ring::new(depth);
        let (mut producer, mut consumer) = ring.split();
        thread::scope(|scope| {
            scope.spawn(move || {
                for value in 0..count {
                    while producer.push(value).is_err() {
                        thread::yield_now();
                    }
                }
                producer.flush();
            });
            let (mut expected, mut batch) = (0, [0; 7]);
            while expected < count {
                // Both ways of taking, in turn.
                if expected % 3 == 0 {
                    let taken = consumer.pop_batch(&mut batch);
                    for value in &batch[..taken] {
                        assert_eq!(*value, expected);
                        expected += 1;
                    }
                } else if let Some(value) = consumer.pop() {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                thread::yield_now();
            }
            assert_eq!(consumer.pop(), None);
        });
    }
}

proptest! {
    #[test]
    fn it_behaves_as_a_bounded_list(depth in 1_usize..9, steps in prop::collection::vec(0_usize..5, 0..200)) {
        let mut ring = Ring::new(depth);
        let (mut producer, mut consumer) = ring.split();
        let mut model = VecDeque::new();
        for (value, step) in steps.into_iter().enumerate() {
            match step {
                // What was popped is published late: a full ring may have room after the consumer's
                // next look, and never takes more than its depth.
                0..=2 => if producer.push(value).is_ok() {
                    prop_assert!(model.len() < depth);
                    model.push_back(value);
                } else {
                    prop_assert!(model.len() + (depth / 4).max(1) > depth);
                },
                3 => {
                    producer.flush();
                    prop_assert_eq!(consumer.pop(), model.pop_front());
                }
                _ => {
                    producer.flush();
                    let mut batch = [0; 3];
                    let taken = consumer.pop_batch(&mut batch);
                    let expected: Vec<usize> = model.drain(..model.len().min(3)).collect();
                    prop_assert_eq!(&batch[..taken], &expected[..]);
                }
            }
        }
    }

    /// A consumer that has published what it took leaves room for exactly as many values.
    #[test]
    fn a_place_that_was_published_is_free(depth in 1_usize..70, taken in 0_usize..70) {
        let taken = taken.min(depth);
        let mut ring = Ring::new(depth);
        let (mut producer, mut consumer) = ring.split();
        for value in 0..depth {
            prop_assert!(producer.push(value).is_ok());
        }
        producer.flush();
        for value in 0..taken {
            prop_assert_eq!(consumer.pop(), Some(value));
        }
        consumer.flush();
        for value in 0..taken {
            prop_assert!(producer.push(depth + value).is_ok());
        }
        prop_assert!(producer.push(0).is_err());
    }

    /// Nothing stays unknown for good: with the consumer at its end, the whole depth is free.
    #[test]
    fn an_empty_ring_takes_its_whole_depth(depth in 1_usize..70, shift in 0_usize..200) {
        let mut ring = Ring::new(depth);
        let (mut producer, mut consumer) = ring.split();
        for value in 0..shift {
            producer.push(value).unwrap();
            producer.flush();
            prop_assert_eq!(consumer.pop(), Some(value));
            prop_assert_eq!(consumer.pop(), None);
        }
        for value in 0..depth {
            prop_assert!(producer.push(value).is_ok());
        }
        prop_assert!(producer.push(0).is_err());
        prop_assert_eq!(consumer.pop(), Some(0));
    }
}
