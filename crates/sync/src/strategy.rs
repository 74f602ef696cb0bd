//! Which worker takes which packet, and how.

mod batch_home;
mod home_queue;
mod lock_free;
mod shared;
mod stealing;
mod sweep;

pub(crate) use batch_home::BatchHome;
pub(crate) use home_queue::HomeQueue;
pub(crate) use lock_free::LockFree;
pub(crate) use shared::SharedQueue;
pub(crate) use stealing::Stealing;
pub(crate) use sweep::{Order, Sweep};

use crate::{Full, Packet};

/// Name of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One worker per queue, no lock.
    LockFree,
    /// One worker per queue, which holds the queue's lock until it has got a packet.
    HomeQueue,
    /// Each worker goes round all queues from its own: try the lock, take one packet, go on.
    Awesome,
    /// The same, with queues drawn at random.
    RandomQueue,
    /// The same; a worker stays at the queue where it found a packet last.
    LastQueue,
    /// A deque per queue, filled by the dispatcher; workers steal from their own first.
    WorkStealing,
    /// One queue for all.
    SharedQueue,
    /// As `Awesome`, up to half a queue at a time; without a lock as `LockFree`.
    BatchDequeue,
    /// No dispatcher: workers draw packets in turn, each for itself. The source must let workers draw from it:
    /// one that pushes, or that belongs to one thread, does not. Workers beyond the cores return at once.
    LeaderFollowers,
}

impl Strategy {
    /// Every strategy, with its letter on the command line and its name.
    pub const ALL: [(char, Self, &'static str); 9] = [
        ('L', Self::LockFree, "LockFree"),
        ('H', Self::HomeQueue, "HomeQueue"),
        ('A', Self::Awesome, "Awesome"),
        ('R', Self::RandomQueue, "RandomQueue"),
        ('Q', Self::LastQueue, "LastQueue"),
        ('W', Self::WorkStealing, "work stealing"),
        ('M', Self::SharedQueue, "shared MPMC queue"),
        ('B', Self::BatchDequeue, "batch dequeue"),
        ('F', Self::LeaderFollowers, "leader/followers"),
    ];

    /// Its letter on the command line.
    #[must_use]
    pub fn letter(self) -> char {
        Self::ALL.iter().find(|(_, known, _)| *known == self).map_or('?', |(letter, ..)| *letter)
    }
}

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
