//! The order of the threads of the service (`unit.bpf.h`): who woke takes a turn in order of arrival; who runs for longer than
//! that goes on by a virtual time of its own, behind those that woke.
//!
//! The service is one process in a group of usual weight, and its threads weigh the same. So its virtual time is the time
//! that its threads had, on all CPUs together, and those that always run share that time in equal parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::constant::{
    AHEAD_TURNS, BEGIN_NS, LAG_MOST_NS, LEAST_TURN_NS, PLACE_STEP_NS, SERVICE_CREDIT_NS, VETERAN_SLICE_NS,
};

/// What a thread had since it woke, and where it stands.
#[derive(Debug, Clone, Default)]
struct Standing {
    /// Place in a queue, in virtual time; 0 while it sleeps, and until it is placed.
    place_ns: u64,
    /// Time on a CPU.
    used_ns: u64,
    /// Virtual time of its own, where it always runs.
    virtual_ns: u64,
    /// It ran for longer than a turn without sleep: it counts as one that always runs.
    is_veteran: bool,
    /// It began while the service was crowded, and may still sleep within its turn.
    has_put_off: bool,
}

/// Places of the threads of the service.
#[derive(Debug)]
pub(crate) struct Order {
    threads: Vec<Standing>,
    /// Of the machine, also those that the service may not use.
    cpus: u64,
    turn_ns: u64,
    /// Virtual time of the service.
    virtual_ns: u64,
    /// Virtual time of whom a queue gave a CPU last.
    clock_ns: u64,
    /// Place of the last that woke.
    last_ns: u64,
    veterans: u64,
    /// From where on another thread may begin while the service is crowded.
    next_begin_ns: u64,
}

impl Order {
    pub(crate) fn new(threads: u32, cpus: u32, turn_ns: u64) -> Self {
        // As in the class: far from 0, so that nothing is before the begin.
        let begin_ns = 1 << 40;
        Self {
            threads: vec![Standing::default(); threads as usize],
            cpus: cpus.into(),
            turn_ns,
            virtual_ns: begin_ns,
            clock_ns: begin_ns,
            last_ns: begin_ns,
            veterans: 0,
            next_begin_ns: begin_ns,
        }
    }

    /// A thread had a CPU for a time (`charge`).
    pub(crate) fn charge(&mut self, thread: u32, used_ns: u64) {
        let each = &mut self.threads[thread as usize];
        self.virtual_ns += used_ns;
        each.used_ns += used_ns;
        each.virtual_ns += if each.is_veteran { self.veterans * used_ns } else { used_ns };
    }

    /// A thread sleeps (`end_turns`).
    pub(crate) fn sleep(&mut self, thread: u32) {
        let each = std::mem::take(&mut self.threads[thread as usize]);
        self.veterans -= u64::from(each.is_veteran);
        if each.has_put_off {
            self.next_begin_ns = self.next_begin_ns.saturating_sub(BEGIN_NS);
        }
    }

    /// Gives the place of a thread that has to wait, or could go on (`set_place`); `ready` counts threads that wait or execute.
    pub(crate) fn place(&mut self, thread: u32, ready: u64) -> u64 {
        let ahead_ns = AHEAD_TURNS * VETERAN_SLICE_NS;
        let each = &self.threads[thread as usize];
        let place_ns = if each.place_ns == 0 {
            self.virtual_ns = self.near_clock(self.virtual_ns, SERVICE_CREDIT_NS, ahead_ns);
            // Never before one that is not done.
            let is_behind = ready > 1 && self.last_ns >= self.virtual_ns;
            self.last_ns = if is_behind { self.last_ns + PLACE_STEP_NS } else { self.virtual_ns };
            self.not_before_begin(self.last_ns)
        } else if self.has_turn(each) {
            each.place_ns
        } else {
            let mut virtual_ns = each.virtual_ns;
            if !each.is_veteran {
                self.veterans += 1;
                virtual_ns = self.virtual_ns;
            }
            virtual_ns = self.near_clock(virtual_ns, LAG_MOST_NS, self.veterans * ahead_ns);
            let each = &mut self.threads[thread as usize];
            (each.is_veteran, each.has_put_off, each.virtual_ns) = (true, false, virtual_ns);
            virtual_ns + self.turn_ns
        };
        self.threads[thread as usize].place_ns = place_ns;
        place_ns
    }

    /// A queue gives a thread a CPU, or it keeps one while others wait (`note_chosen`).
    pub(crate) fn choose(&mut self, thread: u32) {
        let each = &self.threads[thread as usize];
        let virtual_ns = if each.is_veteran { each.virtual_ns } else { each.place_ns };
        self.clock_ns = self.clock_ns.max(virtual_ns);
        if each.is_veteran {
            // It was its turn, so that the service is not ahead of it.
            self.virtual_ns = self.virtual_ns.min(virtual_ns);
        }
    }

    /// A thread begins to execute (`note_turn`); gives its place.
    pub(crate) fn begin(&mut self, thread: u32, ready: u64) -> u64 {
        if self.threads[thread as usize].place_ns == 0 {
            self.place(thread, ready);
        }
        let is_crowded = self.is_crowded();
        let each = &mut self.threads[thread as usize];
        if is_crowded && !each.is_veteran && each.used_ns == 0 && !each.has_put_off {
            each.has_put_off = true;
            self.next_begin_ns = self.virtual_ns + BEGIN_NS;
        }
        each.place_ns
    }

    /// For how long a thread may execute (`lc_slice_of`).
    pub(crate) fn slice_ns(&self, thread: u32) -> u64 {
        let each = &self.threads[thread as usize];
        match (each.is_veteran, self.has_turn(each)) {
            (true, _) => VETERAN_SLICE_NS,
            (false, true) => self.turn_ns - each.used_ns,
            (false, false) => self.turn_ns,
        }
    }

    pub(crate) fn is_veteran(&self, thread: u32) -> bool {
        self.threads[thread as usize].is_veteran
    }

    /// Whether threads that always run would fill all CPUs of the machine.
    pub(crate) fn is_crowded(&self) -> bool {
        self.veterans >= self.cpus
    }

    /// Sets a thread back that waits, has not begun, and came before the service was crowded (`set_back`); gives its new place.
    pub(crate) fn set_back(&mut self, thread: u32, place_ns: u64) -> Option<u64> {
        let later_ns = self.not_before_begin(place_ns);
        let each = &mut self.threads[thread as usize];
        if each.is_veteran || each.used_ns > 0 || later_ns == place_ns {
            return None;
        }
        each.place_ns = later_ns;
        Some(later_ns + PLACE_STEP_NS)
    }

    /// Whether 1 ms or more of its turn is left of a thread.
    const fn has_turn(&self, each: &Standing) -> bool {
        !each.is_veteran && each.used_ns + LEAST_TURN_NS < self.turn_ns
    }

    fn near_clock(&self, virtual_ns: u64, behind_ns: u64, ahead_ns: u64) -> u64 {
        virtual_ns.clamp(self.clock_ns.saturating_sub(behind_ns), self.clock_ns + ahead_ns)
    }

    fn not_before_begin(&self, place_ns: u64) -> u64 {
        let next_ns = self.next_begin_ns;
        let is_early = place_ns < next_ns && next_ns - place_ns <= 2 * BEGIN_NS;
        if is_early && self.is_crowded() { next_ns } else { place_ns }
    }
}

/// Threads that wait: who stands at least virtual time first (fair queueing), among equals who came first.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeastServed {
    /// Virtual time, number of the arrival, thread.
    waiting: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrivals: u64,
}

impl LeastServed {
    /// Lets a thread wait that stands at a virtual time.
    #[inline]
    pub(crate) fn push(&mut self, thread: u32, virtual_ns: u64) {
        self.arrivals += 1;
        self.waiting.push(Reverse((virtual_ns, self.arrivals, thread)));
    }

    /// Takes the thread that is first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.waiting.pop().map(|Reverse((_, _, thread))| thread)
    }

    /// The first, and its virtual time.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u32, u64)> {
        self.waiting.peek().map(|Reverse((virtual_ns, _, thread))| (*thread, *virtual_ns))
    }

    /// Takes a thread out; says whether it was here.
    pub(crate) fn remove(&mut self, thread: u32) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|Reverse((.., each))| *each != thread);
        self.waiting.len() < before
    }

    /// Threads that wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn order(cpus: u32) -> Order {
        Order::new(8, cpus, 12 * MS)
    }

    #[test]
    fn who_woke_goes_in_order_of_arrival_and_keeps_its_place_within_its_turn() {
        let mut order = order(2);
        let places = [5, 3, 4].map(|thread| order.place(thread, 3));
        assert!(places.is_sorted_by(|one, other| one < other), "{places:?}");
        order.begin(5, 3);
        order.charge(5, 10 * MS);
        assert_eq!((order.place(5, 3), order.slice_ns(5)), (places[0], 2 * MS));
        // Who slept stands behind what the service had since.
        order.sleep(5);
        assert_eq!((order.place(5, 3), order.slice_ns(5)), (places[0] + 10 * MS - PLACE_STEP_NS, 12 * MS));
    }

    #[test]
    fn who_has_less_than_the_least_left_of_its_turn_stands_behind_by_a_turn() {
        let mut order = order(2);
        let place_ns = order.begin(0, 1);
        order.charge(0, 11 * MS);
        assert_eq!((order.place(0, 1), order.slice_ns(0)), (place_ns + 23 * MS, 4 * MS));
        // Two of them share the time of the service: each is charged for both.
        order.begin(1, 2);
        order.charge(1, 12 * MS);
        order.place(1, 2);
        order.charge(0, 4 * MS);
        assert_eq!(order.place(0, 2), place_ns + (11 + 2 * 4 + 12) * MS);
        // Nobody waited, so the lead of both is two slices less than what they had.
        order.charge(0, 10 * MS);
        assert_eq!(order.place(0, 2), place_ns + (2 * 4 * 4 + 12) * MS);
    }

    #[test]
    fn in_a_crowd_one_thread_begins_in_200_ms_unless_the_one_before_slept_within_its_turn() {
        let mut order = order(1);
        let begin_ns = order.begin(0, 1);
        order.charge(0, 12 * MS);
        order.place(0, 2);
        let waited_ns = order.place(1, 2);
        assert_eq!(order.begin(2, 3), waited_ns + PLACE_STEP_NS);
        let next_ns = begin_ns + 12 * MS + BEGIN_NS;
        assert_eq!(order.place(3, 4), next_ns);
        assert_eq!(order.set_back(1, waited_ns), Some(next_ns + PLACE_STEP_NS));
        assert_eq!(order.set_back(1, next_ns + PLACE_STEP_NS), None);
        order.sleep(2);
        assert!(order.place(4, 4) < next_ns);
        // Without the one that always runs there is no crowd.
        order.begin(5, 5);
        order.sleep(0);
        assert!(order.place(6, 5) < next_ns);
    }

    #[test]
    fn threads_come_by_virtual_time_and_then_by_arrival() {
        let mut queue = LeastServed::default();
        for (thread, virtual_ns) in [(4, 30), (2, 10), (9, 20), (7, 10), (1, 5)] {
            queue.push(thread, virtual_ns);
        }
        assert!(queue.remove(9) && !queue.remove(9));
        assert_eq!((queue.len(), queue.first()), (4, Some((1, 5))));
        let found: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(found, [1, 2, 7, 4]);
        assert!(queue.first().is_none());
    }
}
