use super::exchange::{Access, Exchange, Offered};
use crate::{Packet, Ring};

/// One worker per queue, no lock.
#[derive(Debug)]
pub(crate) struct LockFree {
    rings: Box<[Ring<Packet>]>,
    depth: usize,
}

impl LockFree {
    pub(crate) fn new(queues: usize, depth: usize) -> Self {
        Self { rings: (0..queues).map(|_| Ring::new(depth)).collect(), depth }
    }
}

/// The right to pop from one ring: given to the one worker of that index.
#[derive(Debug)]
pub(crate) struct OwnRing<'a> {
    ring: &'a Ring<Packet>,
    queue: usize,
}

impl Exchange for LockFree {
    type Seat<'a> = OwnRing<'a>;

    unsafe fn seat(&self, worker: usize) -> OwnRing<'_> {
        OwnRing { ring: &self.rings[worker], queue: worker }
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
    fn take<'a>(&'a self, seat: &mut OwnRing<'a>) -> Option<(usize, Packet)> {
        // SAFETY: this seat was taken once, so this worker is the only one at this ring.
        let packet = unsafe { seat.ring.pop() }?;
        Some((seat.queue, packet))
    }

    fn has_work(&self, seat: &OwnRing<'_>) -> bool {
        !seat.ring.is_empty()
    }

    fn len(&self, queue: usize) -> usize {
        self.rings[queue].len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
