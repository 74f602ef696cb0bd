use super::batch_home::Batch;
use super::exchange::{Access, Exchange, Offered};
use super::home_queue::LockedRing;
use crate::{Lock, Packet};

/// Which queue a worker tries next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one after, whatever happened at this one.
    Around,
    /// One at random.
    Random,
    /// The same again after a packet, else one at random.
    Last,
}

/// Every worker may take from every queue whose lock it gets without waiting.
#[derive(Debug)]
pub(crate) struct Sweep<L> {
    queues: Box<[LockedRing<L>]>,
    depth: usize,
    order: Order,
    batch: usize,
}

impl<L: Lock> Sweep<L> {
    /// Packets are taken one by one.
    pub(crate) fn new(order: Order, queues: usize, depth: usize, workers: usize) -> Self {
        Self { queues: LockedRing::row(queues, depth, workers), depth, order, batch: 1 }
    }

    /// Up to half a queue is taken at once.
    pub(crate) fn with_batches(self) -> Self {
        Self { batch: self.depth, ..self }
    }
}

/// Where a worker stands, and what it has taken along.
#[derive(Debug)]
pub(crate) struct SweepSeat {
    next: usize,
    from: usize,
    batch: Batch,
    random: Random,
}

impl SweepSeat {
    #[inline]
    fn step(&mut self, order: Order, queues: usize, found: bool) {
        self.next = match order {
            Order::Around if self.next + 1 < queues => self.next + 1,
            Order::Around => 0,
            Order::Last if found => self.next,
            Order::Last | Order::Random => self.random.below(queues),
        };
    }
}

impl<L: Lock> Exchange for Sweep<L> {
    type Seat<'a>
        = SweepSeat
    where
        L: 'a;

    unsafe fn seat(&self, worker: usize) -> SweepSeat {
        let home = worker % self.queues.len();
        SweepSeat { next: home, from: home, batch: Batch::new(self.batch), random: Random::new(worker) }
    }

    fn access(&self) -> Access {
        Access::Anyone
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
    fn take(&self, seat: &mut SweepSeat) -> Option<(usize, Packet)> {
        if let Some(packet) = seat.batch.pop() {
            return Some((seat.from, packet));
        }
        for _ in 0..self.queues.len() {
            let queue = seat.next;
            let LockedRing { lock, ring } = &self.queues[queue];
            let found = lock.try_lock().is_some_and(|_held| {
                // SAFETY: the lock is held, and every other popper needs it.
                seat.batch.refill(|target| unsafe { ring.pop_batch(target) })
            });
            seat.step(self.order, self.queues.len(), found);
            if found {
                seat.from = queue;
                return Some((queue, seat.batch.pop()?));
            }
        }
        None
    }

    fn has_work(&self, seat: &SweepSeat) -> bool {
        !seat.batch.is_empty() || self.queues.iter().any(|queue| !queue.ring.is_empty())
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].ring.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

/// Draws queues; each worker has its own stream.
///
/// SOURCE: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003, triple 13, 7, 17.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(worker: usize) -> Self {
        // SOURCE: 2^64 divided by the golden ratio: neighbouring workers start far apart, and none at 0.
        Self((worker as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below `bound`, which must not be 0.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper half of a product with `bound` is below it"
    )]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}
