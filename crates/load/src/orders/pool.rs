//! The connections of a driver: which are free, and which requests wait for one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::address::Connection;
use crate::orders::response::ResponseReader;

/// A place for a connection. At most one request is on its way on each.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// None while it is being made anew.
    pub(super) connection: Option<Arc<Connection>>,
    /// Number of the request whose answer is awaited.
    pub(super) awaited: Option<usize>,
    pub(super) reader: ResponseReader,
}

#[derive(Debug, Default)]
struct Queue {
    /// Places whose connection is free; the last one that became free is used next.
    free: Vec<usize>,
    /// Requests that are due and wait, in order.
    waiting: VecDeque<usize>,
}

/// All places.
#[derive(Debug)]
pub(super) struct Pool {
    slots: Vec<Mutex<Slot>>,
    queue: Mutex<Queue>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new(count: usize) -> Self {
        Self { slots: (0..count).map(|_| Mutex::default()).collect(), queue: Mutex::default() }
    }

    /// The slot of a place, for the caller alone.
    pub(super) fn slot(&self, place: usize) -> MutexGuard<'_, Slot> {
        hold(&self.slots[place])
    }

    /// Gives a place whose connection is free, or lets the request wait.
    pub(super) fn take(&self, request: usize) -> Option<usize> {
        let mut queue = hold(&self.queue);
        let free = if queue.waiting.is_empty() { queue.free.pop() } else { None };
        if free.is_none() {
            queue.waiting.push_back(request);
        }
        free
    }

    /// A place has become free; gives the request that has waited longest, which is to use it.
    pub(super) fn release(&self, place: usize) -> Option<usize> {
        let mut queue = hold(&self.queue);
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.free.push(place);
        }
        next
    }

    /// A request was not sent after all: gives another free place, or lets it be the next that waits.
    pub(super) fn put_back(&self, request: usize) -> Option<usize> {
        let mut queue = hold(&self.queue);
        let free = queue.free.pop();
        if free.is_none() {
            queue.waiting.push_front(request);
        }
        free
    }

    /// A place has lost its connection.
    pub(super) fn withdraw(&self, place: usize) {
        hold(&self.queue).free.retain(|free| *free != place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_in_order_and_a_lost_place_is_not_given() {
        let pool = Pool::new(2);
        assert_eq!(pool.take(0), None, "nothing is connected yet");
        assert_eq!(pool.take(1), None);
        assert_eq!(pool.release(0), Some(0));
        assert_eq!(pool.put_back(0), None);
        assert_eq!(pool.release(0), Some(0));
        assert_eq!(pool.release(1), Some(1));
        assert_eq!((pool.release(0), pool.release(1)), (None, None));
        pool.withdraw(1);
        assert_eq!(pool.take(2), Some(0));
        assert_eq!(pool.take(3), None);
        assert_eq!((pool.release(0), pool.release(0)), (Some(3), None));
        assert_eq!(pool.put_back(4), Some(0), "another place is free");
    }
}
