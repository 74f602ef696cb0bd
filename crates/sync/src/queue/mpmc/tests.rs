use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::*;

#[test]
fn a_queue_of_any_depth_is_full_exactly_at_its_depth() {
    for depth in [1, 2, 3, 5, 8, 33] {
        let queue = Mpmc::new(depth);
        for lap in 0..5 {
            for value in 0..depth {
                queue.push(lap * 100 + value).unwrap();
            }
            assert_eq!(queue.push(7), Err(Full(7)));
            assert_eq!(queue.len(), depth);
            for value in 0..depth {
                assert_eq!(queue.pop(), Some(lap * 100 + value));
            }
            assert_eq!(queue.pop(), None);
        }
    }
}

/// Each consumer sees the values of each producer in order, and together they see each once.
#[test]
fn nothing_is_lost_or_doubled_and_each_producer_keeps_its_order() {
    const PRODUCERS: usize = 3;
    const CONSUMERS: usize = 3;
    let count = if cfg!(miri) { 40 } else { 10_000_usize };
    for depth in [1, 2, 7, 64] {
        let queue = Mpmc::new(depth);
        let seen: Vec<Vec<(usize, usize)>> = thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let queue = &queue;
                scope.spawn(move || {
                    for value in 0..count {
                        while queue.push((producer, value)).is_err() {
                            thread::yield_now();
                        }
                    }
                });
            }
            let consumers: Vec<_> = (0..CONSUMERS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = Vec::new();
                        while seen.len() < count {
                            match queue.pop() {
                                Some(value) => seen.push(value),
                                None => thread::yield_now(),
                            }
                        }
                        seen
                    })
                })
                .collect();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
        });
        for list in &seen {
            for producer in 0..PRODUCERS {
                let values: Vec<usize> =
                    list.iter().filter(|(from, _)| *from == producer).map(|(_, value)| *value).collect();
                assert!(values.is_sorted_by(|one, other| one < other));
            }
        }
        let mut all: Vec<(usize, usize)> = seen.into_iter().flatten().collect();
        all.sort_unstable();
        let expected: Vec<(usize, usize)> =
            (0..PRODUCERS).flat_map(|producer| (0..count).map(move |value| (producer, value))).collect();
        assert_eq!(all, expected);
    }
}

proptest! {
    #[test]
    fn it_behaves_as_a_bounded_list(depth in 1_usize..9, steps in prop::collection::vec(any::<bool>(), 0..200)) {
        let queue = Mpmc::new(depth);
        let mut model = VecDeque::new();
        for (value, pushes) in steps.into_iter().enumerate() {
            if pushes {
                let pushed = queue.push(value).is_ok();
                prop_assert_eq!(pushed, model.len() < depth);
                if pushed { model.push_back(value); }
            } else {
                prop_assert_eq!(queue.pop(), model.pop_front());
            }
            prop_assert_eq!(queue.len(), model.len());
        }
    }
}
