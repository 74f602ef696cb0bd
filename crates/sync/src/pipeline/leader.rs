//! A pipeline without a dispatcher: workers take turns in drawing packets.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;

use steelyard_work::Stopwatch;

use super::pin;
use super::settings::Settings;
use crate::join::join;
use crate::timer::StopFlag;
use crate::{End, Load, Lock, Outcome, Packet, Padded, Share, Sources, SyncError};

/// Packets drawn at once at most.
const LARGEST: usize = 16;

/// The sources and whose turn is next: what a dispatcher knows.
#[derive(Debug)]
struct Dealer {
    sources: Sources,
    next: usize,
    dealt: u64,
    limit: Option<u64>,
}

impl Dealer {
    /// Fills `hand` with the next packets, one from each source in turn, and gives their number.
    #[inline]
    fn deal(&mut self, hand: &mut [(usize, Packet)]) -> usize {
        let left =
            self.limit.map_or(usize::MAX, |limit| usize::try_from(limit - self.dealt).unwrap_or(usize::MAX));
        let count = hand.len().min(left);
        for place in &mut hand[..count] {
            *place = (self.next, self.sources.next_packet(self.next));
            self.next += 1;
            if self.next == self.sources.count() {
                self.next = 0;
            }
        }
        self.dealt += count as u64;
        count
    }
}

/// A dealer under a lock: whoever holds it is the leader.
#[derive(Debug)]
struct Table<L> {
    lock: L,
    dealer: Padded<UnsafeCell<Dealer>>,
}

// SAFETY: the dealer is reached under the lock only.
unsafe impl<L: Lock> Sync for Table<L> {}

impl<L: Lock> Table<L> {
    fn new(sources: Sources, limit: Option<u64>, threads: usize) -> Self {
        let dealer = Dealer { sources, next: 0, dealt: 0, limit };
        Self { lock: L::new(threads), dealer: Padded(UnsafeCell::new(dealer)) }
    }

    #[inline]
    fn deal(&self, hand: &mut [(usize, Packet)]) -> usize {
        let _held = self.lock.lock();
        // SAFETY: the lock is held, and nothing else makes a reference to the dealer.
        unsafe { &mut *self.dealer.get() }.deal(hand)
    }

    fn dealt(self) -> u64 {
        self.dealer.0.into_inner().dealt
    }
}

/// Executes the pipeline: every worker is leader when its packets are used up, for as long as it takes
/// to draw the next half of a queue.
///
/// SOURCE: D. C. Schmidt et al., "Leader/Followers", Pattern Languages of Programs 2000. Own deviation:
/// the leader takes several packets and is follower to itself, and no more workers than cores take part: nobody
/// ever waits for packets, so a further one could only take a core from whoever has some.
pub(super) fn execute<L: Lock>(load: &Load, settings: &Settings) -> Result<Outcome, SyncError> {
    pin::require(&settings.cpus)?;
    let sources = load.open();
    let source_means = sources.means();
    let table = Table::<L>::new(sources, load.packet_limit(), settings.workers);
    let stop = Padded(StopFlag::default());
    let start = Barrier::new(settings.workers + 1);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (shares, times) = thread::scope(|scope| {
        let (table, stop, start) = (&table, &stop, &start);
        let workers: Vec<_> = (0..settings.workers)
            .map(|worker| {
                scope.spawn(move || {
                    pin::apply(&settings.cpus, worker);
                    start.wait();
                    if worker >= cores {
                        return Share::new(load.sources as usize);
                    }
                    work(table, stop, load.sources as usize, settings.depth)
                })
            })
            .collect();
        pin::sharpen_timers();
        start.wait();
        let watch = Stopwatch::start();
        let timer = match load.end {
            End::After(ms) => Some(stop.set_after(scope, ms, || ())),
            End::Packets(_) => None,
        };
        let shares: Vec<Share> = workers.into_iter().map(join).collect();
        (shares, timer.map_or_else(|| watch.elapsed(), join))
    });
    Ok(Outcome {
        shares,
        dispatched: table.dealt(),
        full_waits: 0,
        dispatcher_idle: None,
        times,
        source_means,
    })
}

fn work<L: Lock>(table: &Table<L>, stop: &StopFlag, sources: usize, depth: usize) -> Share {
    let mut share = Share::new(sources);
    let mut hand = [(0, Packet::default()); LARGEST];
    let hand = &mut hand[..(depth / 2).clamp(1, LARGEST)];
    loop {
        let count = table.deal(hand);
        if count == 0 {
            return share;
        }
        for &(source, packet) in &hand[..count] {
            let fingerprint = packet.fingerprint();
            // A packet counts if it was finished before the flag.
            if stop.is_set() {
                return share;
            }
            share.count(source, packet, fingerprint);
        }
    }
}
