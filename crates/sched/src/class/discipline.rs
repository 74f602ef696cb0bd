//! In which order threads that wait in one queue get a CPU.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;

/// A queueing discipline.
///
/// The class takes the first of a queue and asks nothing else of it, so that another order is another implementation,
/// named in [`ServiceOrder`](super::ServiceOrder) or [`JobOrder`](super::JobOrder).
pub(crate) trait Discipline: Debug + Clone + Default {
    /// Lets a thread wait that has had so much virtual time.
    fn push(&mut self, thread: u32, virtual_ns: u64);

    /// Takes the thread that is first.
    fn pop(&mut self) -> Option<u32>;

    /// Virtual time of the first.
    fn first_ns(&self) -> Option<u64>;

    /// Takes a thread out; says whether it was here.
    fn remove(&mut self, thread: u32) -> bool;

    /// Threads that wait.
    fn len(&self) -> usize;

    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// First come, first served: order of arrival (FCFS), whatever virtual time was had.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstCome(VecDeque<u32>);

impl Discipline for FirstCome {
    #[inline]
    fn push(&mut self, thread: u32, _: u64) {
        self.0.push_back(thread);
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.0.pop_front()
    }

    fn first_ns(&self) -> Option<u64> {
        self.0.front().map(|_| 0)
    }

    fn remove(&mut self, thread: u32) -> bool {
        let place = self.0.iter().position(|&each| each == thread);
        place.is_some_and(|place| self.0.remove(place).is_some())
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Who had least virtual time first (fair queueing); among equals who came first.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeastServed {
    /// Virtual time, number of the arrival, thread.
    waiting: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrivals: u64,
}

impl Discipline for LeastServed {
    #[inline]
    fn push(&mut self, thread: u32, virtual_ns: u64) {
        self.arrivals += 1;
        self.waiting.push(Reverse((virtual_ns, self.arrivals, thread)));
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.waiting.pop().map(|Reverse((_, _, thread))| thread)
    }

    #[inline]
    fn first_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((virtual_ns, ..))| *virtual_ns)
    }

    fn remove(&mut self, thread: u32) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|Reverse((.., each))| *each != thread);
        self.waiting.len() < before
    }

    #[inline]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order<D: Discipline>(pushed: &[(u32, u64)], removed: u32) -> Vec<u32> {
        let mut queue = D::default();
        for &(thread, virtual_ns) in pushed {
            queue.push(thread, virtual_ns);
        }
        assert!(queue.remove(removed) && !queue.remove(removed));
        let found: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(queue.is_empty() && queue.first_ns().is_none());
        found
    }

    #[test]
    fn each_discipline_has_its_order() {
        let pushed = [(4, 30), (2, 10), (9, 20), (7, 10), (1, 5)];
        assert_eq!(order::<FirstCome>(&pushed, 9), [4, 2, 7, 1]);
        assert_eq!(order::<LeastServed>(&pushed, 9), [1, 2, 7, 4]);
    }
}
