//! Where a thread that wakes goes.

use crate::config::Policy;
use crate::machine::{Layout, Machine};
use crate::state::{BEST_EFFORT, SERVICE, State};

impl Machine {
    /// Wakes a thread of the service.
    pub(crate) fn wake(&mut self, thread: u32) {
        self.counters.wake_ups += 1;
        self.set_state(thread, State::Waiting);
        if self.layout == Layout::Caches {
            self.place_service(thread);
            return;
        }
        let Some(cpu) = self.place(thread) else {
            self.line.push_back(thread);
            return;
        };
        self.arrive(thread, cpu);
    }

    /// Starts a best-effort thread on an idle CPU, else on the one with fewest threads (`sched_balance_find_dst_cpu`).
    pub(crate) fn start(&mut self, thread: u32) {
        self.set_state(thread, State::Waiting);
        self.threads[thread as usize].work_left_ns = self.config.best_effort.iteration_ns;
        if self.layout == Layout::Caches {
            self.place_job(thread);
            return;
        }
        let idle = self.sets.idle.first_in(0, self.config.cores);
        let fewest =
            || (0_u32..).zip(&self.cpus).min_by_key(|(_, each)| each.all_threads()).map_or(0, |(cpu, _)| cpu);
        self.arrive(thread, idle.unwrap_or_else(fewest));
    }

    /// Queues a thread on a CPU and interrupts that if the thread goes first (`wakeup_preempt`).
    pub(crate) fn arrive(&mut self, thread: u32, cpu: u32) {
        self.charge(cpu);
        self.count_migration(thread, cpu);
        self.enqueue(thread, cpu);
        if self.goes_first(thread, cpu) {
            self.ask_to_decide(cpu, self.now_ns + self.config.costs.interrupt_ns);
        }
    }

    /// Whether a thread that was queued just now interrupts the one that executes.
    fn goes_first(&self, thread: u32, cpu: u32) -> bool {
        let current = self.cpus[cpu as usize].current;
        if current == crate::fair::NONE {
            return true;
        }
        let (mine, theirs) = (self.kind_of(thread), self.kind_of(current));
        let is_strict = self.layout == Layout::Classes || self.is_idle_class;
        match (mine, theirs) {
            (SERVICE, BEST_EFFORT) if is_strict => true,
            (BEST_EFFORT, SERVICE) if is_strict => false,
            (SERVICE, SERVICE) if self.config.policy == Policy::Fifo => false,
            // SOURCE: kernel/sched/fair.c, `check_preempt_wakeup_fair`: batch and idle threads do not preempt.
            (BEST_EFFORT, BEST_EFFORT) if self.config.policy == Policy::Idle => false,
            _ if self.layout == Layout::Groups && mine != theirs => {
                let group = self.group_entity(cpu, mine);
                self.queues[3 * cpu as usize].choose(&self.entities) == group
            }
            _ => self.queues[self.queue_of(cpu, mine)].choose(&self.entities) == thread,
        }
    }

    /// Chooses a CPU for a thread of the service; `None` if it is to wait in the line for any.
    fn place(&self, thread: u32) -> Option<u32> {
        let before = self.threads[thread as usize].cpu;
        match self.config.policy {
            Policy::Fifo => self.place_real_time(before),
            _ => Some(self.place_fair(thread, before)),
        }
    }

    /// As Linux (`select_idle_sibling`): the CPU before if it is idle, the one before that, an idle CPU behind the
    /// same cache, else the CPU before. A CPU that executes only `SCHED_IDLE` counts as idle.
    fn place_fair(&self, thread: u32, before: u32) -> u32 {
        let free = if self.is_idle_class { &self.sets.without_service } else { &self.sets.idle };
        if free.has(before) {
            return before;
        }
        let cache = self.cache_of(before);
        let recent = self.threads[thread as usize].recent_cpu;
        if (cache.0..cache.1).contains(&recent) && free.has(recent) {
            return recent;
        }
        let limit = self.scan_limits[(before / self.config.cache_cores) as usize];
        let Some(found) = free.next_from(before, cache) else { return before };
        let size = cache.1 - cache.0;
        let distance = (found + size - before) % size;
        if distance <= limit { found } else { before }
    }

    /// As Linux (`find_lowest_rq`): the CPU before, then others, that execute nothing of real-time priority.
    fn place_real_time(&self, before: u32) -> Option<u32> {
        let free = &self.sets.without_service;
        let is_usable = |cpu: &u32| !self.keepers[*cpu as usize].real_time.is_throttled;
        if free.has(before) && is_usable(&before) {
            return Some(before);
        }
        let (low, high) = self.cache_of(before);
        let near = (low..high).find(|cpu| free.has(*cpu) && is_usable(cpu));
        near.or_else(|| free.iter().find(is_usable))
    }
}
