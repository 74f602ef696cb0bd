//! Queues of bounded depth. Each gives a value back that it has no room for.

mod deque;
mod mpmc;
mod ring;

pub use deque::{Deque, DequeOwner, Stolen, Thief, Word};
pub use mpmc::Mpmc;
pub use ring::{Consumer, Producer, Ring};

/// The queue is full; here is the value back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// Slots for `depth` values: a power of two, so that a position is masked and not divided.
fn slot_count(depth: usize) -> usize {
    assert!(depth > 0, "a queue without room cannot pass anything on");
    depth.next_power_of_two()
}
