//! Threads that wait, in order of virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who had least virtual time first (fair queueing); among equals who came first.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeastServed {
    /// Virtual time, number of the arrival, thread.
    waiting: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrivals: u64,
}

impl LeastServed {
    /// Lets a thread wait that stands at a virtual time.
    #[inline]
    pub(crate) fn push(&mut self, thread: u32, virtual_ns: u64) {
        self.arrivals += 1;
        self.waiting.push(Reverse((virtual_ns, self.arrivals, thread)));
    }

    /// Takes the thread that is first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.waiting.pop().map(|Reverse((_, _, thread))| thread)
    }

    /// The first, and its virtual time.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u32, u64)> {
        self.waiting.peek().map(|Reverse((virtual_ns, _, thread))| (*thread, *virtual_ns))
    }

    /// Takes a thread out; says whether it was here.
    pub(crate) fn remove(&mut self, thread: u32) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|Reverse((.., each))| *each != thread);
        self.waiting.len() < before
    }

    /// Threads that wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_by_virtual_time_and_then_by_arrival() {
        let mut queue = LeastServed::default();
        for (thread, virtual_ns) in [(4, 30), (2, 10), (9, 20), (7, 10), (1, 5)] {
            queue.push(thread, virtual_ns);
        }
        assert!(queue.remove(9) && !queue.remove(9));
        assert_eq!((queue.len(), queue.first()), (4, Some((1, 5))));
        let found: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(found, [1, 2, 7, 4]);
        assert!(queue.first().is_none());
    }
}
