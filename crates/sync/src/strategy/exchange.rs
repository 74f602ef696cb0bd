//! What every strategy offers a dispatcher and its workers.

use crate::{Full, Packet};

/// Which workers may take from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only the workers whose index is the queue's, modulo the smaller of their numbers.
    Home,
    /// Every worker.
    Anyone,
}

/// What became of a packet that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// Nothing: the queue is full.
    Refused,
    /// It is in the queue; workers will see it together with later ones.
    HeldBack,
    /// It is in the queue for workers to see, with those that were held back.
    Shown,
    /// It is in the queue for workers to see, as every packet of this strategy.
    Visible,
}

impl<T> From<Result<bool, Full<T>>> for Offered {
    #[inline]
    fn from(pushed: Result<bool, Full<T>>) -> Self {
        match pushed {
            Ok(true) => Self::Shown,
            Ok(false) => Self::HeldBack,
            Err(Full(_)) => Self::Refused,
        }
    }
}

/// The queues between a dispatcher and its workers, under one strategy.
pub(crate) trait Exchange: Sync {
    /// What a worker remembers between packets.
    type Seat<'a>
    where
        Self: 'a;

    /// The seat of one worker: with it one thread takes packets from where only one may.
    ///
    /// # Safety
    ///
    /// Each worker's seat is taken once.
    unsafe fn seat(&self, worker: usize) -> Self::Seat<'_>;

    /// Which workers may take from a queue.
    fn access(&self) -> Access;

    /// Queues.
    fn queue_count(&self) -> usize;

    /// The queue that a source feeds.
    #[inline]
    fn queue_of(&self, source: usize) -> usize {
        source
    }

    /// Adds a packet if there is room.
    ///
    /// # Safety
    ///
    /// Only one thread, the dispatcher, may call it.
    unsafe fn offer(&self, source: usize, packet: Packet) -> Offered;

    /// Shows packets to workers that were held back in a queue; says whether there were any.
    ///
    /// # Safety
    ///
    /// As for [`Exchange::offer`].
    unsafe fn flush(&self, _queue: usize) -> bool {
        false
    }

    /// Takes a packet with its source, if this worker finds one now.
    fn take<'a>(&'a self, seat: &mut Self::Seat<'a>) -> Option<(usize, Packet)>;

    /// Whether there may be something for this worker. Once the dispatcher has finished, `false` is
    /// final.
    fn has_work(&self, seat: &Self::Seat<'_>) -> bool;

    /// Packets in a queue, as of a moment ago.
    fn len(&self, queue: usize) -> usize;

    /// Packets a queue can hold.
    fn depth(&self) -> usize;
}
