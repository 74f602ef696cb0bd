use super::exchange::{Access, Exchange, Offered};
use super::sweep::Random;
use crate::{Deque, Packet, Stolen};

/// A deque per queue. The dispatcher owns all of them and only pushes; workers only steal, from their
/// own deque first and then from others, beginning at one drawn at random. So the oldest packet of a
/// source always goes first.
#[derive(Debug)]
pub(crate) struct Stealing {
    deques: Box<[Deque<Packet>]>,
    depth: usize,
}

impl Stealing {
    pub(crate) fn new(queues: usize, depth: usize) -> Self {
        Self { deques: (0..queues).map(|_| Deque::new(depth)).collect(), depth }
    }

    #[inline]
    fn steal(&self, queue: usize) -> Option<(usize, Packet)> {
        loop {
            match self.deques[queue].steal() {
                Stolen::Value(packet) => return Some((queue, packet)),
                Stolen::Empty => return None,
                // Somebody else has taken one: that is progress, so this ends.
                Stolen::Lost => crate::atomic::pause(),
            }
        }
    }
}

/// A worker's own deque, and whom it tries next.
#[derive(Debug)]
pub(crate) struct StealSeat {
    home: usize,
    random: Random,
}

impl Exchange for Stealing {
    type Seat<'a> = StealSeat;

    unsafe fn seat(&self, worker: usize) -> StealSeat {
        StealSeat { home: worker % self.deques.len(), random: Random::new(worker) }
    }

    fn access(&self) -> Access {
        Access::Anyone
    }

    fn queue_count(&self) -> usize {
        self.deques.len()
    }

    #[inline]
    unsafe fn offer(&self, source: usize, packet: Packet) -> Offered {
        // SAFETY: the caller is the only dispatcher, the owner of every deque.
        unsafe { self.deques[source].push(packet) }.map_or(Offered::Refused, |()| Offered::Visible)
    }

    #[inline]
    fn take(&self, seat: &mut StealSeat) -> Option<(usize, Packet)> {
        self.steal(seat.home).or_else(|| {
            let count = self.deques.len();
            let first = seat.random.below(count);
            (first..first + count).find_map(|queue| self.steal(queue % count))
        })
    }

    fn has_work(&self, _: &StealSeat) -> bool {
        self.deques.iter().any(|deque| !deque.is_empty())
    }

    fn len(&self, queue: usize) -> usize {
        self.deques[queue].len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
