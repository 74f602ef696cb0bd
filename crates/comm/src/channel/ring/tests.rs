use std::time::Duration;

use proptest::prelude::*;

use super::super::sleep::{Barrier, LATE, Patience};
use super::*;

/// Every way of waiting.
fn manners() -> [Manner; 3] {
    let barrier = Barrier::register();
    [
        Manner { barrier, patience: Patience::Spin },
        Manner { barrier: Barrier::Both, patience: Patience::Offer },
        Manner { barrier, patience: Patience::None },
    ]
}

/// An endpoint that always lives.
struct Alive;

impl Lifeline for Alive {
    fn check(&self) -> Result<(), CommError> {
        Ok(())
    }
}

/// An endpoint that is gone.
struct Gone;

impl Lifeline for Gone {
    fn check(&self) -> Result<(), CommError> {
        Err(CommError::lost("it ended"))
    }
}

fn byte(message: usize, index: usize) -> u8 {
    (message * 31 + index * 7 + index / 251).to_le_bytes()[0]
}

/// Sends messages of these sizes from one thread to another, starting near a wrap of the numbers, and
/// checks every byte. Gives how often a side slept over what it waited for.
fn carry(sizes: &[usize], manner: Manner, [write_pause, read_pause]: [Duration; 2]) -> u32 {
    let memory = Mapping::anonymous(2 * RING_BYTES).unwrap();
    // A multiple of the cells below the wrap; a fresh ring has other numbers, so its words are set.
    let first = 0_u32.wrapping_sub(2 * CELLS);
    place(&memory, 1).tail().store(first, Release);
    std::thread::scope(|scope| {
        LATE.set(0);
        let writing = scope.spawn(|| {
            let mut writer = Writer { written: first, emptied: first, manner };
            for (message, size) in sizes.iter().enumerate() {
                let payload: Vec<u8> = (0..*size).map(|index| byte(message, index)).collect();
                std::thread::sleep(write_pause);
                let done = if message % 3 == 0 { writer.send_some(&memory, 1, &payload, 0) } else { 0 };
                writer.send_all(&memory, 1, (&payload, done), &Alive).unwrap();
            }
            LATE.get()
        });
        let mut reader = Reader { read: first, manner };
        for (message, size) in sizes.iter().enumerate() {
            let mut payload = vec![0; *size];
            std::thread::sleep(read_pause);
            reader.receive(&memory, 1, (&mut payload, 0), &Alive).unwrap();
            let is_right = payload.iter().enumerate().all(|(index, found)| *found == byte(message, index));
            assert!(is_right, "message {message} of {size} bytes");
        }
        assert_eq!(reader.arrived(&memory, 1), 0);
        writing.join().unwrap() + LATE.get()
    })
}

#[test]
fn sizes_around_every_boundary_arrive_as_they_were() {
    let edges =
        [0, 1, INLINE_BYTES, BODY_BYTES, BODY_BYTES * CELLS as usize, 3 * BODY_BYTES * CELLS as usize];
    let sizes: Vec<usize> = edges.iter().flat_map(|edge| [edge.saturating_sub(1), *edge, edge + 1]).collect();
    for manner in manners() {
        carry(&sizes, manner, [Duration::ZERO; 2]);
    }
}

#[test]
fn nobody_sleeps_over_a_message() {
    // Longer than the spinning and one sleep, so that the reader sleeps each time, and then the writer in a
    // full ring.
    let pause = Duration::from_millis(30);
    let small = [100; 12];
    let large = [BODY_BYTES * CELLS as usize + 1; 12];
    for manner in manners() {
        let late = carry(&small, manner, [pause, Duration::ZERO]);
        // The limit of a sleep may by chance end just when the message comes.
        assert!(late <= 4, "the reader slept over {late} of 12 messages");
        let late = carry(&large, manner, [Duration::ZERO, pause]);
        assert!(late <= 4, "the writer slept over {late} of 12 messages");
    }
}

#[test]
fn many_small_messages_arrive_in_order() {
    let sizes: Vec<usize> = (0..50_000).map(|message| message % 200).collect();
    carry(&sizes, manners()[0], [Duration::ZERO; 2]);
}

#[test]
fn a_full_ring_takes_no_more_and_says_so() {
    let memory = Mapping::anonymous(2 * RING_BYTES).unwrap();
    let mut writer = Writer::new(manners()[1]);
    let reader = Reader::new(manners()[1]);
    assert!(!reader.has_arrived(&memory, 0));
    let payload = vec![1; 2 * BODY_BYTES * CELLS as usize];
    assert!(writer.test(&memory, 0));
    assert_eq!(writer.send_some(&memory, 0, &payload, 0), CELLS as usize);
    assert!(!writer.test(&memory, 0));
    assert!(reader.has_arrived(&memory, 0));
    assert_eq!(reader.arrived(&memory, 0), u64::from(CELLS));
    assert_eq!(reader.arrived(&memory, 1), 0);
    let error = writer.send_all(&memory, 0, (&payload, CELLS as usize), &Gone).unwrap_err();
    assert!(matches!(error, CommError::PeerLost { .. }));
}

#[test]
fn a_message_of_another_size_is_a_disagreement() {
    let memory = Mapping::anonymous(2 * RING_BYTES).unwrap();
    Writer::new(manners()[1]).send_all(&memory, 0, (&[1, 2, 3], 0), &Alive).unwrap();
    let answer = Reader::new(manners()[1]).receive(&memory, 0, (&mut [0; 4], 0), &Alive);
    assert!(matches!(answer, Err(CommError::Disagreement(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_sizes_arrive_as_they_were(sizes in prop::collection::vec(0_usize..3 * BODY_BYTES * CELLS as usize / 2, 1..4)) {
        carry(&sizes, manners()[0], [Duration::ZERO; 2]);
    }
}
