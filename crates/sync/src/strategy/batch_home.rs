use super::exchange::{Access, Exchange, Offered};
use crate::{Packet, Ring};

/// Packets taken at once at most.
const LARGEST: usize = 16;

/// One worker per queue, no lock, several packets at a time.
#[derive(Debug)]
pub(crate) struct BatchHome {
    rings: Box<[Ring<Packet>]>,
    depth: usize,
}

impl BatchHome {
    pub(crate) fn new(queues: usize, depth: usize) -> Self {
        Self { rings: (0..queues).map(|_| Ring::new(depth)).collect(), depth }
    }
}

/// Packets that have left their queue and wait for their worker.
#[derive(Debug)]
pub(crate) struct Batch {
    packets: [Packet; LARGEST],
    next: usize,
    end: usize,
    size: usize,
}

impl Batch {
    /// Half of a queue at most: the dispatcher fills the other half meanwhile.
    pub(crate) fn new(depth: usize) -> Self {
        let packets = [Packet::default(); LARGEST];
        Self { packets, next: 0, end: 0, size: (depth / 2).clamp(1, LARGEST) }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        if self.is_empty() {
            return None;
        }
        let packet = self.packets[self.next];
        self.next += 1;
        Some(packet)
    }

    /// Replaces the content by what `fill` writes and says whether that is anything.
    #[inline]
    pub(crate) fn refill(&mut self, fill: impl FnOnce(&mut [Packet]) -> usize) -> bool {
        self.next = 0;
        self.end = fill(&mut self.packets[..self.size]).min(self.size);
        self.end > 0
    }
}

/// The right to pop from one ring: given to the one worker of that index.
#[derive(Debug)]
pub(crate) struct BatchSeat<'a> {
    ring: &'a Ring<Packet>,
    queue: usize,
    batch: Batch,
}

impl Exchange for BatchHome {
    type Seat<'a> = BatchSeat<'a>;

    unsafe fn seat(&self, worker: usize) -> BatchSeat<'_> {
        BatchSeat { ring: &self.rings[worker], queue: worker, batch: Batch::new(self.depth) }
    }

    fn access(&self) -> Access {
        Access::Home
    }

    fn queue_count(&self) -> usize {
        self.rings.len()
    }

    #[inline]
    unsafe fn offer(&self, source: usize, packet: Packet) -> Offered {
        // SAFETY: the caller is the only dispatcher.
        unsafe { self.rings[source].push(packet) }.into()
    }

    #[inline]
    unsafe fn flush(&self, queue: usize) -> bool {
        // SAFETY: the caller is the only dispatcher.
        unsafe { self.rings[queue].flush() }
    }

    #[inline]
    fn take<'a>(&'a self, seat: &mut BatchSeat<'a>) -> Option<(usize, Packet)> {
        if seat.batch.is_empty() {
            // SAFETY: this seat was taken once, so this worker is the only one at this ring.
            seat.batch.refill(|target| unsafe { seat.ring.pop_batch(target) });
        }
        Some((seat.queue, seat.batch.pop()?))
    }

    fn has_work(&self, seat: &BatchSeat<'_>) -> bool {
        !seat.batch.is_empty() || !seat.ring.is_empty()
    }

    fn len(&self, queue: usize) -> usize {
        self.rings[queue].len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
