//! The best-effort class, as it is shipped (`crates/sched/bpf`): who waits where, and who is next.
//!
//! Threads of the service wait in one queue per cache, at the place that [`Order`] gives them; jobs in another, in the order of
//! the virtual time that they had. A job that is interrupted rests at its CPU until its turn is over. Times of
//! the class are as in its sources; moments, loans to holders of locks and the freezer are not simulated, since jobs here
//! hold no locks and get no signals; CPUs are cores of one hardware thread on one memory node.

mod dispatch;
mod order;

use crate::class::order::{LeastServed, Order};
use crate::config::{Config, Policy};
use crate::constant::{GATE_MOST, JOB_SLICE_NS, LEAST_TURN_NS, LOOK_NS, MOST_TURNS, NEGLECTED_NS};
use crate::cpu_set::CpuSet;
use crate::fair::NONE;
use crate::state::SERVICE;

/// CPUs that share a cache.
#[derive(Debug, Clone, Default)]
struct Cache {
    service: LeastServed,
    jobs: LeastServed,
    /// Virtual time of the job that had most when it started here.
    virtual_ns: u64,
    /// When its CPUs look for longer queues of a kind elsewhere again.
    look_ns: [u64; 2],
    /// When a queue of a kind last gave a thread away, or got its first.
    served_ns: [u64; 2],
}

/// What the class knows of a CPU.
#[derive(Debug, Clone)]
struct Local {
    /// Thread that was sent here and goes first, or [`NONE`].
    sent: u32,
    /// Job that was interrupted here, or [`NONE`].
    resting: u32,
    rest_start_ns: u64,
    /// Threads of the service that wait here, without the exit check.
    service: LeastServed,
    /// Time of each kind, without the local check.
    kind_ns: [u64; 2],
    /// When the thread that executes began to.
    run_start_ns: u64,
    /// From when on it has not been charged, if it is of the service.
    charged_ns: u64,
}

/// Turns of a job: a turn is a slice of CPU time, however often it is interrupted.
#[derive(Debug, Clone, Default)]
struct Turn {
    virtual_ns: u64,
    /// Had of the turn.
    used_ns: u64,
    /// Turns in a row.
    turns: u64,
    /// Since when it waits.
    wait_start_ns: u64,
}

impl Turn {
    /// What is left of the turn; a rest that is shorter than the least is none.
    const fn left_ns(&self) -> Option<u64> {
        if self.used_ns + LEAST_TURN_NS < JOB_SLICE_NS { Some(JOB_SLICE_NS - self.used_ns) } else { None }
    }
}

/// State of the class.
#[derive(Debug)]
pub(crate) struct Class {
    caches: Vec<Cache>,
    locals: Vec<Local>,
    turns: Vec<Turn>,
    order: Order,
    /// Place of the thread of the service that executes on a CPU; 0: none does, or it was interrupted.
    places: Vec<u64>,
    /// When the slice of the thread that executes on a CPU is over.
    slice_end_ns: Vec<u64>,
    /// CPUs that execute a job and were not claimed for the service.
    claimable: CpuSet,
    /// CPUs that a job rests at.
    rests: CpuSet,
    /// Threads that wait in queues of caches, by kind.
    queued: [u32; 2],
    /// Sum of all waits of jobs that were so long that the job counts as parked.
    pub(crate) parked_ns: u64,
}

impl Class {
    pub(crate) fn new(config: &Config) -> Self {
        let cpus = if config.policy == Policy::Be { config.cores } else { 0 };
        let caches = cpus.div_ceil(config.cache_cores);
        let local = Local {
            sent: NONE,
            resting: NONE,
            rest_start_ns: 0,
            service: LeastServed::default(),
            kind_ns: [0; 2],
            run_start_ns: 0,
            charged_ns: 0,
        };
        Self {
            caches: vec![Cache::default(); caches as usize],
            locals: vec![local; cpus as usize],
            turns: vec![Turn::default(); (config.best_effort.jobs * config.best_effort.threads) as usize],
            order: Order::new(
                config.service.threads + 1,
                cpus + caches * config.unused_cores,
                config.class_slice_ns,
            ),
            places: vec![0; cpus as usize],
            slice_end_ns: vec![0; cpus as usize],
            claimable: CpuSet::new(cpus),
            rests: CpuSet::new(cpus),
            queued: [0; 2],
            parked_ns: 0,
        }
    }

    fn push(&mut self, kind: usize, cache: usize, (thread, virtual_ns): (u32, u64), now_ns: u64) {
        let each = &mut self.caches[cache];
        let queue = if kind == SERVICE { &mut each.service } else { &mut each.jobs };
        if queue.len() == 0 {
            each.served_ns[kind] = now_ns;
        }
        queue.push(thread, virtual_ns);
        self.queued[kind] += 1;
    }

    fn pop(&mut self, kind: usize, cache: usize, now_ns: u64) -> Option<u32> {
        if self.queued[kind] == 0 {
            return None;
        }
        let each = &mut self.caches[cache];
        let thread = if kind == SERVICE { each.service.pop() } else { each.jobs.pop() }?;
        each.served_ns[kind] = now_ns;
        self.queued[kind] -= 1;
        Some(thread)
    }

    fn len(&self, kind: usize, cache: usize) -> usize {
        let each = &self.caches[cache];
        if kind == SERVICE { each.service.len() } else { each.jobs.len() }
    }

    /// Other caches, the next one first, around.
    fn others(&self, cache: usize) -> impl Iterator<Item = usize> + use<> {
        let all = self.caches.len();
        (1..all).map(move |places| (cache + places) % all)
    }

    /// Now and then takes a thread from a queue that is longer than this one, or was given nothing for long, so that
    /// none is left behind where the CPUs of its cache have other things to do for good.
    fn even_out(&mut self, kind: usize, cache: usize, now_ns: u64) -> Option<u32> {
        if self.caches.len() < 2 || self.queued[kind] == 0 || now_ns < self.caches[cache].look_ns[kind] {
            return None;
        }
        self.caches[cache].look_ns[kind] = now_ns + LOOK_NS;
        let own = self.len(kind, cache);
        let from = self.others(cache).find(|&other| {
            let length = self.len(kind, other);
            length > own || length > 0 && now_ns - self.caches[other].served_ns[kind] > NEGLECTED_NS
        })?;
        self.pop(kind, from, now_ns)
    }

    /// Takes a thread that waits behind another cache.
    fn pop_elsewhere(&mut self, kind: usize, cache: usize, now_ns: u64) -> Option<u32> {
        if self.queued[kind] == 0 {
            return None;
        }
        self.others(cache).find_map(|other| self.pop(kind, other, now_ns))
    }

    /// Takes the job that rests at a CPU.
    fn pop_rest(&mut self, cpu: u32) -> Option<u32> {
        let resting = std::mem::replace(&mut self.locals[cpu as usize].resting, NONE);
        self.rests.put(cpu, false);
        (resting != NONE).then_some(resting)
    }

    /// Whether the first that waits behind a cache is to follow on a job: it had less, or that one had enough turns.
    fn is_anybody_due(&self, cache: usize, job: u32) -> bool {
        let turn = &self.turns[job as usize];
        let first = self.caches[cache].jobs.first();
        first.is_some_and(|(_, first_ns)| first_ns < turn.virtual_ns || turn.turns + 1 >= MOST_TURNS)
    }

    /// Of a pool, all threads but few wait for a CPU and have no request yet, while those that run take one after the other: the
    /// more of them begin, the longer takes each request. So whoever woke before the service was crowded is set back to
    /// where it may begin.
    fn set_back(&mut self, cache: usize) {
        if self.queued[SERVICE] == 0 || !self.order.is_crowded() {
            return;
        }
        let queue = &mut self.caches[cache].service;
        for _ in 0..GATE_MOST {
            let Some((thread, place_ns)) = queue.first() else { return };
            let Some(later_ns) = self.order.set_back(thread, place_ns) else { return };
            queue.pop();
            queue.push(thread, later_ns);
        }
    }
}
