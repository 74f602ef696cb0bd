use std::time::{Duration, Instant};

use super::crew::Crew;
use crate::Sources;
use crate::strategy::{Exchange, Offered};
use crate::wait::{Habit, Patience};

/// What the dispatcher did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dispatched {
    pub(super) packets: u64,
    pub(super) full_waits: u64,
    /// Time between a refused packet and its acceptance.
    pub(super) idle: Duration,
}

/// Visible packets after which the dispatcher looks whether a worker should be woken: looking takes a
/// full fence, which takes longer than drawing a packet.
const QUIET: u64 = 8;

/// Deals packets from each source in turn until the stop flag is set or `limit` packets are dealt;
/// waits when a queue is full.
///
/// # Safety
///
/// It is called once for an exchange.
pub(super) unsafe fn dispatch<E: Exchange>(
    sources: &mut Sources,
    exchange: &E,
    crew: &Crew,
    limit: Option<u64>,
    habit: Habit,
) -> Dispatched {
    let mut done = Dispatched::default();
    let mut quiet = 0;
    let mut alarm = Alarm::new(habit);
    let dense = exchange.depth().div_ceil(2);
    'rounds: while limit != Some(done.packets) {
        for source in 0..sources.count() {
            let packet = sources.next_packet(source);
            let queue = exchange.queue_of(source);
            // SAFETY: passed on to the caller: this is the only dispatcher.
            let mut offered = unsafe { exchange.offer(source, packet) };
            if offered == Offered::Refused {
                done.full_waits += 1;
                let since = Instant::now();
                while offered == Offered::Refused {
                    if crew.stop.is_set() {
                        done.idle += since.elapsed();
                        break 'rounds;
                    }
                    // SAFETY: as above.
                    unsafe { show_all(exchange, crew) };
                    alarm.wait_for_room(exchange, crew, queue);
                    // SAFETY: as above.
                    offered = unsafe { exchange.offer(source, packet) };
                }
                done.idle += since.elapsed();
            }
            done.packets += 1;
            quiet += u64::from(offered == Offered::Visible);
            if offered == Offered::Shown || quiet == QUIET {
                quiet = 0;
                crew.added_to(queue, || exchange.len(queue) >= dense);
            }
        }
        if crew.stop.is_set() {
            break;
        }
    }
    // SAFETY: as above.
    unsafe { show_all(exchange, crew) };
    crew.close();
    done
}

/// Shows workers everything that is held back: the dispatcher is about to wait for one of them, and
/// none may sleep over packets meanwhile.
///
/// # Safety
///
/// Only the dispatcher may call it.
#[cold]
unsafe fn show_all<E: Exchange>(exchange: &E, crew: &Crew) {
    for queue in 0..exchange.queue_count() {
        // SAFETY: passed on to the caller.
        unsafe { exchange.flush(queue) };
        crew.added_to(queue, || true);
    }
}

/// How long the dispatcher sleeps.
///
/// A worker that has to wake the dispatcher loses some microseconds of its own time. So the dispatcher
/// sleeps by the clock, for three quarters of the time that it had to wait last, and is woken only when
/// the queue runs out before.
#[derive(Debug)]
struct Alarm {
    last: Duration,
    habit: Habit,
}

impl Alarm {
    /// SOURCE: the kernel needs some microseconds to put a thread to sleep and to wake it.
    const SHORTEST: Duration = Duration::from_micros(10);
    /// A bound on what a wrong guess costs; the queue that runs out wakes earlier.
    const LONGEST: Duration = Duration::from_millis(10);

    /// SOURCE: measured with `benches/packets.py`: below this, waking takes longer than the wait.
    /// Spinning is not free either: two cores of a virtual machine may be two threads of one.
    const WORTH_SLEEPING: Duration = Duration::from_micros(40);

    fn new(habit: Habit) -> Self {
        Self { last: Self::SHORTEST, habit }
    }

    /// Waits until half of a queue is free, so that going on pays for more than one packet and the two
    /// sides do not work on the same cache line.
    #[cold]
    fn wait_for_room<E: Exchange>(&mut self, exchange: &E, crew: &Crew, queue: usize) {
        let has_room = || exchange.len(queue) <= exchange.depth() / 2 || crew.stop.is_set();
        // Where it took long the last time and every thread has a core, nobody is served by spinning, nor by
        // offering the core: on a busy machine whoever offers it waits for a whole slice, and whoever sleeps
        // is back at once.
        let start = Instant::now();
        let patience = crew.patience();
        let is_short = patience == Patience::CROWDED || self.last < Self::WORTH_SLEEPING;
        if is_short && patience.wait_as_before(&mut self.habit, has_room) {
            // A wait that an offer of the core has ended tells how long others had it, not the queue.
            if !self.habit.offered() {
                self.last = start.elapsed().clamp(Self::SHORTEST, Self::LONGEST);
            }
            return;
        }
        crew.lend_core();
        if self.habit.is_among_strangers() {
            // How long half of the queue takes cannot be learnt while others have the cores, and the clock
            // would wake too early or too late: a worker wakes.
            while !has_room() {
                crew.sleep_for_room(queue, Self::LONGEST, has_room);
            }
            return;
        }
        while !has_room() {
            let nap = (self.last * 3 / 4).saturating_sub(start.elapsed()).max(self.last / 8);
            crew.sleep_for_room(queue, nap.clamp(Self::SHORTEST, Self::LONGEST), has_room);
        }
        // Sleeping too long must not make the next sleep longer: what counts is how long half of the queue
        // takes. A queue that has run out says only that sleeping was wrong.
        let half = u32::try_from(exchange.depth() / 2).unwrap_or(u32::MAX).max(1);
        let left = exchange.len(queue).min(exchange.depth());
        let free = u32::try_from(exchange.depth() - left).unwrap_or(u32::MAX).max(half);
        let taken = if left == 0 { Self::SHORTEST } else { start.elapsed() / free * half };
        self.last = taken.clamp(Self::SHORTEST, Self::LONGEST);
    }
}
