use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst as Strict};
use std::thread;

use proptest::prelude::*;

use super::*;

#[test]
fn a_packet_survives_being_a_word() {
    let packet = Packet { iterations: u32::MAX - 1, seed: 100_000_000 };
    assert_eq!(Packet::from_word(packet.to_word()), packet);
}

#[test]
fn every_value_goes_to_the_owner_or_to_one_thief() {
    let count = if cfg!(miri) { 100 } else { 30_000_u64 };
    for depth in [1, 3, 16] {
        let mut deque = Deque::new(depth);
        let (mut owner, thief) = deque.split();
        let done = AtomicBool::new(false);
        let mut all: Vec<u64> = thread::scope(|scope| {
            let thieves: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut taken = Vec::new();
                        loop {
                            let was_done = done.load(Strict);
                            match thief.steal() {
                                Stolen::Value(value) => taken.push(value),
                                Stolen::Empty if was_done => break taken,
                                Stolen::Empty | Stolen::Lost => thread::yield_now(),
                            }
                        }
                    })
                })
                .collect();
            let mut taken = Vec::new();
            for value in 0..count {
                while owner.push(value).is_err() {
                    taken.extend(owner.pop());
                }
                if value % 3 == 0 {
                    taken.extend(owner.pop());
                }
            }
            done.store(true, Strict);
            for thief in thieves {
                let stolen: Vec<u64> = thief.join().unwrap();
                assert!(stolen.is_sorted(), "thieves take the oldest");
                taken.extend(stolen);
            }
            taken
        });
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn it_behaves_as_a_bounded_list_with_two_ends(
        depth in 1_usize..9,
        steps in prop::collection::vec(0_u8..4, 0..200),
    ) {
        let mut deque = Deque::new(depth);
        let (mut owner, thief) = deque.split();
        let mut model = VecDeque::new();
        for (value, step) in (0_u64..).zip(steps) {
            match step {
                0 | 1 => {
                    let pushed = owner.push(value).is_ok();
                    prop_assert_eq!(pushed, model.len() < depth);
                    if pushed { model.push_back(value); }
                }
                2 => prop_assert_eq!(owner.pop(), model.pop_back()),
                _ => {
                    let expected = model.pop_front().map_or(Stolen::Empty, Stolen::Value);
                    prop_assert_eq!(thief.steal(), expected);
                }
            }
        }
    }
}
