use super::exchange::{Access, Exchange, Offered};
use crate::{Lock, Packet, Ring};

/// A ring whose popping end is under a lock.
#[derive(Debug)]
pub(super) struct LockedRing<L> {
    pub(super) lock: L,
    pub(super) ring: Ring<Packet>,
}

impl<L: Lock> LockedRing<L> {
    pub(super) fn row(queues: usize, depth: usize, threads: usize) -> Box<[Self]> {
        (0..queues).map(|_| Self { lock: L::new(threads), ring: Ring::new(depth) }).collect()
    }
}

/// The lock of a queue is held until a packet comes out of it.
///
/// With fewer workers than queues a worker has several and waits at one of them only while all are
/// empty; with more workers than queues several wait for the lock of one.
#[derive(Debug)]
pub(crate) struct HomeQueue<L> {
    queues: Box<[LockedRing<L>]>,
    depth: usize,
    workers: usize,
}

impl<L: Lock> HomeQueue<L> {
    pub(crate) fn new(queues: usize, depth: usize, workers: usize) -> Self {
        Self { queues: LockedRing::row(queues, depth, workers), depth, workers }
    }

    /// The queues of a worker: all from `first` in steps of `step`.
    fn own_queues(&self, seat: &HomeSeat<'_, L>) -> impl Iterator<Item = &LockedRing<L>> {
        self.queues.iter().skip(seat.first).step_by(self.workers)
    }
}

/// Where a worker stands.
pub(crate) struct HomeSeat<'a, L: Lock + 'a> {
    first: usize,
    current: usize,
    held: Option<L::Guard<'a>>,
}

impl<L: Lock> Exchange for HomeQueue<L> {
    type Seat<'a>
        = HomeSeat<'a, L>
    where
        L: 'a;

    unsafe fn seat(&self, worker: usize) -> HomeSeat<'_, L> {
        let first = worker % self.queues.len();
        HomeSeat { first, current: first, held: None }
    }

    fn access(&self) -> Access {
        Access::Home
    }

    fn queue_count(&self) -> usize {
        self.queues.len()
    }

    #[inline]
    unsafe fn offer(&self, source: usize, packet: Packet) -> Offered {
        // SAFETY: the caller is the only dispatcher.
        unsafe { self.queues[source].ring.push(packet) }.into()
    }

    #[inline]
    unsafe fn flush(&self, queue: usize) -> bool {
        // SAFETY: the caller is the only dispatcher.
        unsafe { self.queues[queue].ring.flush() }
    }

    #[inline]
    fn take<'a>(&'a self, seat: &mut HomeSeat<'a, L>) -> Option<(usize, Packet)> {
        let start = seat.current;
        loop {
            let queue = seat.current;
            let LockedRing { lock, ring } = &self.queues[queue];
            if seat.held.is_none() {
                seat.held = Some(lock.lock());
            }
            // SAFETY: the lock is held, and every other popper needs it.
            let packet = unsafe { ring.pop() };
            let next = queue + self.workers;
            let next = if next < self.queues.len() { next } else { seat.first };
            if packet.is_none() && next == queue {
                return None;
            }
            seat.held = None;
            seat.current = next;
            if let Some(packet) = packet {
                return Some((queue, packet));
            }
            if next == start {
                return None;
            }
        }
    }

    fn has_work(&self, seat: &HomeSeat<'_, L>) -> bool {
        self.own_queues(seat).any(|queue| !queue.ring.is_empty())
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].ring.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
