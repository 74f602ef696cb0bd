//! The machine: CPUs, threads, queues, and the loop over events.

use std::collections::VecDeque;

use crate::class::Class;
use crate::config::{Config, Policy};
use crate::constant::{GROUP_WEIGHT, IDLE_WEIGHT, NICE_0_WEIGHT, NICE_19_WEIGHT, WEIGHT_SHIFT};
use crate::cpu_set::CpuSet;
use crate::crowd::Crowd;
use crate::fair::{Entity, NONE, Queue};
use crate::pool::Pool;
use crate::record::{Counters, Iteration};
use crate::state::{Cpu, Decay, Keeper, Ledger, Recency, SERVICE, State, Thread};
use crate::ticks::Ticks;
use crate::timeline::{NEVER, Timeline};

/// How threads of both kinds share the queues of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One queue of threads.
    Flat,
    /// A queue of two groups, each with a queue of threads.
    Groups,
    /// The service goes first.
    Classes,
    /// Queues of the best-effort class, which are not of a CPU.
    Caches,
}

/// CPUs by what they are doing, so that no search looks at each CPU.
#[derive(Debug)]
pub(crate) struct Sets {
    /// Nothing can execute there.
    pub(crate) idle: CpuSet,
    /// No thread of the service can execute there: idle or best-effort.
    pub(crate) without_service: CpuSet,
    /// Two or more threads, one of which waits and may be moved.
    pub(crate) crowded: Crowd,
}

/// Scheduler state and mechanism; policies are in `pick`, `placement` and `balance`.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    /// Best-effort threads, or their group, give way as `SCHED_IDLE` does.
    pub(crate) is_idle_class: bool,
    pub(crate) now_ns: u64,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) recency: Vec<Recency>,
    /// What Linux's schedulers keep for each CPU beyond its queues.
    pub(crate) keepers: Vec<Keeper>,
    /// Threads first, then both groups of each CPU.
    pub(crate) entities: Vec<Entity>,
    /// Three per CPU: root, service, best-effort.
    pub(crate) queues: Vec<Queue>,
    /// Threads of the service that wait for any CPU, under [`Policy::Fifo`].
    pub(crate) line: VecDeque<u32>,
    pub(crate) sets: Sets,
    pub(crate) timeline: Timeline,
    pub(crate) ticks: Ticks,
    pub(crate) ledger: Ledger,
    pub(crate) decay: Decay,
    pub(crate) counters: Counters,
    pub(crate) iterations: Vec<Iteration>,
    pub(crate) pool: Pool,
    pub(crate) class: Class,
    /// Scaled `cpu.weight` of each group.
    shares: [u32; 2],
    /// CPUs that a wake-up may look at, per cache.
    pub(crate) scan_limits: Vec<u32>,
    /// When CPUs that share a cache compare themselves with others, per cache.
    pub(crate) cache_balance_ns: Vec<u64>,
}

fn layout_of(config: &Config) -> Layout {
    match config.policy {
        Policy::Weights | Policy::CpuIdle => Layout::Groups,
        Policy::Fifo => Layout::Classes,
        Policy::Be => Layout::Caches,
        Policy::Idle | Policy::Nice | Policy::None => Layout::Flat,
    }
}

fn group_shares(config: &Config) -> [u32; 2] {
    // SOURCE: kernel/sched/sched.h, `sched_weight_from_cgroup`: 100 is 1024.
    let scaled = |weight: u32| (weight * NICE_0_WEIGHT / GROUP_WEIGHT) << WEIGHT_SHIFT;
    match config.policy {
        Policy::Weights => [scaled(config.service_weight), scaled(config.best_effort_weight)],
        _ => [scaled(GROUP_WEIGHT), IDLE_WEIGHT << WEIGHT_SHIFT],
    }
}

impl Machine {
    pub(crate) fn new(config: Config) -> Self {
        let cores = config.cores;
        let jobs = config.best_effort.jobs * config.best_effort.threads;
        let best_effort_weight = match config.policy {
            Policy::Nice => NICE_19_WEIGHT,
            Policy::Idle => IDLE_WEIGHT,
            _ => NICE_0_WEIGHT,
        };
        let service = config.service.threads + 1;
        let threads: Vec<Thread> = (0..service)
            .map(|each| Thread::new(each % cores, NONE))
            .chain((0..jobs).map(|each| Thread::new(each % cores, each)))
            .collect();
        let weight_of = |kind| if kind == SERVICE { NICE_0_WEIGHT } else { best_effort_weight };
        let mut entities: Vec<Entity> =
            (0..service + jobs).map(|each| Entity::new(weight_of(usize::from(each >= service)))).collect();
        entities.resize(threads.len() + 2 * cores as usize, Entity::new(NICE_0_WEIGHT));
        let set = || CpuSet::new(cores);
        let (mut idle, mut without_service) = (set(), set());
        for cpu in 0..cores {
            idle.put(cpu, true);
            without_service.put(cpu, true);
        }
        let caches = cores.div_ceil(config.cache_cores) as usize;
        // SOURCE: kernel/sched/topology.c, `sd_init`: `min_interval` = CPUs of the domain, in ms.
        let domain = config.cache_cores.min(cores) + config.unused_cores;
        let interval_ns = u64::from(domain) * 1_000_000;
        Self {
            layout: layout_of(&config),
            is_idle_class: matches!(config.policy, Policy::Idle | Policy::CpuIdle),
            now_ns: 0,
            cpus: vec![Cpu::default(); cores as usize],
            queues: vec![Queue::new(8); 3 * cores as usize],
            line: VecDeque::with_capacity(config.service.threads as usize),
            sets: Sets { idle, without_service, crowded: Crowd::new(cores) },
            timeline: Timeline::new(cores),
            ticks: Ticks::new(cores, config.tick_ns),
            ledger: Ledger::default(),
            decay: Decay::new(),
            counters: Counters::default(),
            iterations: Vec::new(),
            pool: Pool::new(&config),
            class: Class::new(&config),
            shares: group_shares(&config),
            scan_limits: vec![domain; caches],
            cache_balance_ns: vec![u64::from(cores) * 1_000_000; caches],
            recency: vec![Recency::default(); threads.len()],
            keepers: vec![Keeper::new(interval_ns); cores as usize],
            threads,
            entities,
            config,
        }
    }

    #[inline]
    pub(crate) fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.cpus[cpu as usize]
    }

    /// CPUs that share a cache with this one.
    #[inline]
    pub(crate) fn cache_of(&self, cpu: u32) -> (u32, u32) {
        let size = self.config.cache_cores;
        let low = cpu / size * size;
        (low, (low + size).min(self.config.cores))
    }

    /// CPUs behind the cache of this one, usable or not.
    pub(crate) fn cache_size(&self, cpu: u32) -> u32 {
        let (low, high) = self.cache_of(cpu);
        high - low + self.config.unused_cores
    }

    #[inline]
    pub(crate) fn every_cpu(&self) -> (u32, u32) {
        (0, self.config.cores)
    }

    pub(crate) fn group_entity(&self, cpu: u32, kind: usize) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 2^20 threads of each kind and 2^13 groups"
        )]
        let place = (self.threads.len() + kind) as u32;
        place + 2 * cpu
    }

    /// Queue that threads of a kind wait in.
    #[inline]
    pub(crate) fn queue_of(&self, cpu: u32, kind: usize) -> usize {
        let root = 3 * cpu as usize;
        match self.layout {
            Layout::Flat | Layout::Caches => root,
            Layout::Groups => root + 1 + kind,
            Layout::Classes => root + 2 * kind,
        }
    }

    /// [`SERVICE`] or [`BEST_EFFORT`]: workers have the first numbers, then comes the reader.
    #[inline]
    pub(crate) fn kind_of(&self, thread: u32) -> usize {
        usize::from(thread > self.reader())
    }

    /// The thread of the service that reads requests and wakes workers.
    #[inline]
    pub(crate) fn reader(&self) -> u32 {
        self.config.service.threads
    }

    pub(crate) fn set_state(&mut self, thread: u32, state: State) {
        let kind = self.kind_of(thread);
        let each = &mut self.threads[thread as usize];
        match each.state {
            State::Blocked => {}
            State::Waiting => {
                self.ledger.waiting[kind] -= 1;
                self.ledger.end_wait(kind, each.wait);
            }
            State::Running => self.ledger.running[kind] -= 1,
        }
        match state {
            State::Blocked => {}
            State::Waiting => {
                self.ledger.waiting[kind] += 1;
                each.wait = self.ledger.begin_wait();
            }
            State::Running => self.ledger.running[kind] += 1,
        }
        each.state = state;
    }

    /// Brings the sets up to date after a CPU changed.
    #[inline]
    pub(crate) fn note(&mut self, cpu: u32) {
        let each = &self.cpus[cpu as usize];
        let [service, best_effort] = each.threads;
        let all = service + best_effort;
        // Real-time threads wait in a line of their own, from which they go where they may.
        let can_move = self.layout != Layout::Classes
            || best_effort > 1
            || best_effort == 1 && (each.current == NONE || self.kind_of(each.current) == SERVICE);
        self.sets.idle.put(cpu, all == 0);
        self.sets.without_service.put(cpu, service == 0);
        self.sets.crowded.set(cpu, if all >= 2 && can_move { all } else { 0 });
    }

    /// Lets a thread wait on a CPU.
    pub(crate) fn enqueue(&mut self, thread: u32, cpu: u32) {
        let (kind, slice_ns) = (self.kind_of(thread), self.config.slice_ns);
        let queue = self.queue_of(cpu, kind);
        let is_first = self.queues[queue].is_empty();
        self.queues[queue].add(thread, &mut self.entities, slice_ns);
        self.cpu(cpu).threads[kind] += 1;
        if self.layout == Layout::Groups {
            let group = self.group_entity(cpu, kind);
            if is_first {
                self.entities[group as usize].weight = self.group_weight(cpu, kind);
                self.queues[3 * cpu as usize].add(group, &mut self.entities, slice_ns);
            } else {
                self.reweigh_group(cpu, kind);
            }
        }
        self.threads[thread as usize].cpu = cpu;
        self.recency[thread as usize].touched_ns = self.now_ns;
        self.note(cpu);
    }

    /// Takes a thread off its CPU.
    pub(crate) fn dequeue(&mut self, thread: u32) {
        let (kind, cpu) = (self.kind_of(thread), self.threads[thread as usize].cpu);
        // SOURCE: kernel/sched/fair.c, `update_entity_lag`.
        let limit_ns = (2 * self.config.slice_ns).max(self.config.tick_ns);
        let queue = self.queue_of(cpu, kind);
        self.queues[queue].remove(thread, &mut self.entities, limit_ns);
        self.cpu(cpu).threads[kind] -= 1;
        if self.layout == Layout::Groups {
            if self.queues[queue].is_empty() {
                let group = self.group_entity(cpu, kind);
                self.queues[3 * cpu as usize].remove(group, &mut self.entities, limit_ns);
            } else {
                self.reweigh_group(cpu, kind);
            }
        }
        self.note(cpu);
    }

    /// Weight of a group on a CPU: its share by runnable threads (`calc_group_shares`, without averaging over time).
    fn group_weight(&self, cpu: u32, kind: usize) -> u32 {
        let here = u64::from(self.cpus[cpu as usize].threads[kind]);
        let all = self.ledger.running[kind] + self.ledger.waiting[kind];
        let share = u64::from(self.shares[kind]) * here / all.max(here).max(1);
        #[expect(clippy::cast_possible_truncation, reason = "no more than the whole share")]
        let weight = share as u32;
        weight.max(crate::constant::LEAST_SHARE)
    }

    pub(crate) fn reweigh_group(&mut self, cpu: u32, kind: usize) {
        let weight = self.group_weight(cpu, kind);
        let group = self.group_entity(cpu, kind);
        self.queues[3 * cpu as usize].reweigh(group, weight, &mut self.entities);
    }

    /// Charges a CPU's thread for its time since the last charge (`update_curr`).
    pub(crate) fn charge(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let each = &mut self.cpus[cpu as usize];
        let (thread, since_ns) = (each.current, each.charged_ns);
        each.charged_ns = now_ns;
        if thread == NONE || now_ns == since_ns {
            return;
        }
        let passed = now_ns - since_ns;
        let kind = self.kind_of(thread);
        if self.layout == Layout::Caches {
            self.charge_by_class(cpu, thread, passed);
        } else if kind == SERVICE && self.config.policy == Policy::Fifo {
            self.keepers[cpu as usize].real_time.used_ns += passed;
        } else {
            self.cpus[cpu as usize].use_average.add(passed);
            let slice_ns = self.config.slice_ns;
            let mut is_over = self.entities[thread as usize].charge(passed, slice_ns);
            let queue = self.queue_of(cpu, kind);
            is_over &= !self.queues[queue].waiting.is_empty();
            if self.layout == Layout::Groups {
                let group = self.group_entity(cpu, kind);
                let is_group_over = self.entities[group as usize].charge(passed, slice_ns);
                is_over |= is_group_over && !self.queues[3 * cpu as usize].waiting.is_empty();
            }
            self.cpus[cpu as usize].is_slice_over |= is_over;
        }
        self.work(thread, since_ns, passed);
    }

    /// Lets a thread get on with its work for a time.
    fn work(&mut self, thread: u32, since_ns: u64, passed_ns: u64) {
        let iteration_ns = self.config.best_effort.iteration_ns;
        let is_service = self.kind_of(thread) == SERVICE;
        let each = &mut self.threads[thread as usize];
        each.cpu_ns += passed_ns;
        let lost = each.overhead_left_ns.min(passed_ns);
        each.overhead_left_ns -= lost;
        let mut useful = passed_ns - lost;
        if is_service {
            each.work_left_ns -= useful.min(each.work_left_ns);
            return;
        }
        let mut at_ns = since_ns + lost;
        while useful >= each.work_left_ns {
            at_ns += each.work_left_ns;
            useful -= each.work_left_ns;
            each.work_left_ns = iteration_ns;
            let threads = self.config.best_effort.threads;
            let (job, lane) = (each.task / threads, each.task % threads);
            self.iterations.push(Iteration { job, thread: lane, end_ns: at_ns });
        }
        each.work_left_ns -= useful;
    }

    /// Makes a CPU decide anew, at once or when the interrupt has got there.
    #[inline]
    pub(crate) fn ask_to_decide(&mut self, cpu: u32, at_ns: u64) {
        let each = self.cpu(cpu);
        each.decide_ns = each.decide_ns.min(at_ns);
        self.refresh(cpu);
    }

    #[inline]
    pub(crate) fn refresh(&mut self, cpu: u32) {
        self.timeline.set(cpu, self.cpus[cpu as usize].attention_ns());
    }

    /// Whether a CPU has nothing planned.
    pub(crate) fn is_asleep(&self, cpu: u32) -> bool {
        self.cpus[cpu as usize].attention_ns() >= NEVER
    }
}
