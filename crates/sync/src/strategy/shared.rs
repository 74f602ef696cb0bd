use super::exchange::{Access, Exchange, Offered};
use crate::{Mpmc, Packet};

/// One queue for all sources and workers, as deep as the queues of the other strategies together.
#[derive(Debug)]
pub(crate) struct SharedQueue {
    queue: Mpmc<(Packet, u32)>,
    depth: usize,
}

impl SharedQueue {
    pub(crate) fn new(sources: usize, depth: usize) -> Self {
        let depth = sources * depth;
        Self { queue: Mpmc::new(depth), depth }
    }
}

impl Exchange for SharedQueue {
    type Seat<'a> = ();

    unsafe fn seat(&self, _: usize) {}

    fn access(&self) -> Access {
        Access::Anyone
    }

    fn queue_count(&self) -> usize {
        1
    }

    #[inline]
    fn queue_of(&self, _: usize) -> usize {
        0
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 255 sources")]
    unsafe fn offer(&self, source: usize, packet: Packet) -> Offered {
        self.queue.push((packet, source as u32)).map_or(Offered::Refused, |()| Offered::Visible)
    }

    #[inline]
    fn take(&self, (): &mut ()) -> Option<(usize, Packet)> {
        let (packet, source) = self.queue.pop()?;
        Some((source as usize, packet))
    }

    fn has_work(&self, (): &()) -> bool {
        !self.queue.is_empty()
    }

    fn len(&self, _: usize) -> usize {
        self.queue.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
