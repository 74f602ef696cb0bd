//! Which worker takes which packet, and how.

mod batch_home;
mod exchange;
mod home_queue;
mod lock_free;
mod shared;
mod stealing;
mod sweep;

pub(crate) use batch_home::BatchHome;
pub(crate) use exchange::{Access, Exchange, Offered};
pub(crate) use home_queue::HomeQueue;
pub(crate) use lock_free::LockFree;
pub(crate) use shared::SharedQueue;
pub(crate) use stealing::Stealing;
pub(crate) use sweep::{Order, Sweep};

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
