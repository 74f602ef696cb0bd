//! Moving threads between CPUs.

use crate::config::Policy;
use crate::constant::{BUSY_FACTOR, HOT_NS, IMBALANCE_PERCENT};
use crate::machine::{Layout, Machine};
use crate::state::{BEST_EFFORT, SERVICE, State};

impl Machine {
    /// Moves a waiting thread to a CPU.
    fn pull(&mut self, thread: u32, cpu: u32) {
        self.counters.migrations += 1;
        self.dequeue(thread);
        self.enqueue(thread, cpu);
    }

    /// Takes over a thread instead of going idle (`sched_balance_newidle`); says whether there was one.
    pub(crate) fn fill_idle(&mut self, cpu: u32) -> bool {
        let is_by_class = self.layout == Layout::Classes;
        let Some(from) = self.sets.crowded.most(self.cache_of(cpu)) else { return false };
        self.charge(from);
        let Some(thread) = self.oldest(from, |kind| !is_by_class || kind == BEST_EFFORT) else {
            return false;
        };
        self.counters.idle_moves += 1;
        self.pull(thread, cpu);
        true
    }

    /// Waiting thread of a CPU that was queued or executed longest ago and is not hot (`detach_tasks`).
    fn oldest(&self, cpu: u32, is_wanted: impl Fn(usize) -> bool) -> Option<u32> {
        let root = 3 * cpu as usize;
        let threads = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let waiting = self.queues[root..root + 3].iter().flat_map(|queue| &queue.waiting).copied();
        let is_hot = |each: u32| {
            let recency = &self.recency[each as usize];
            // SOURCE: kernel/sched/fair.c, `task_hot`: `SCHED_IDLE` never is.
            let can_be = !(self.kind_of(each) == BEST_EFFORT && self.config.policy == Policy::Idle);
            can_be && recency.stopped_ns + HOT_NS > self.now_ns && recency.stopped_ns > 0
        };
        waiting
            .filter(|&each| each < threads && self.threads[each as usize].state == State::Waiting)
            .filter(|&each| is_wanted(self.kind_of(each)) && !is_hot(each))
            .min_by_key(|&each| (self.recency[each as usize].touched_ns, each))
    }

    /// Balancing at a tick: on behalf of idle CPUs, and periodically for this one.
    pub(crate) fn balance_at_tick(&mut self, cpu: u32) {
        if self.sets.crowded.has(cpu) {
            self.wake_balancer(cpu);
        }
        if self.config.policy == Policy::Fifo || self.now_ns < self.keepers[cpu as usize].balance.next_ns {
            return;
        }
        self.counters.balance_runs += 1;
        self.update_scan_limit(cpu);
        let is_moved = self.balance_within(cpu);
        let least_ns = u64::from(self.cache_size(cpu)) * 1_000_000;
        let is_busy = !(self.is_idle_class && self.cpus[cpu as usize].threads[SERVICE] == 0);
        let now_ns = self.now_ns;
        let balance = &mut self.keepers[cpu as usize].balance;
        // SOURCE: kernel/sched/fair.c, `sched_balance_rq`: doubled while balanced, up to twice the number of CPUs.
        balance.interval_ns = if is_moved { least_ns } else { (2 * balance.interval_ns).min(2 * least_ns) };
        balance.next_ns = now_ns + balance.interval_ns * if is_busy { BUSY_FACTOR } else { 1 };
        self.balance_between(cpu);
    }

    /// Lets an idle CPU take a thread of a crowded one (`nohz_balancer_kick`).
    fn wake_balancer(&mut self, cpu: u32) {
        let cache = self.cache_of(cpu);
        let idle = self.sets.idle.first_in(cache.0, cache.1);
        let Some(idle) = idle.or_else(|| self.sets.idle.first_in(0, self.config.cores)) else { return };
        if self.is_asleep(idle) && self.fill_idle(idle) {
            self.ask_to_decide(idle, self.now_ns + self.config.costs.interrupt_ns);
        }
    }

    /// How many CPUs a wake-up may look at (`update_idle_cpu_scan`): none once the cache's CPUs are 85 % in use.
    fn update_scan_limit(&mut self, cpu: u32) {
        let (low, high) = self.cache_of(cpu);
        let now_ns = self.now_ns;
        let mut total = 0.0;
        for each in low..high {
            self.charge(each);
            total += self.cpus[each as usize].use_average.at(now_ns, &self.decay);
        }
        let cpus = f64::from(self.cache_size(cpu));
        #[expect(clippy::cast_precision_loss, reason = "a small constant")]
        let scaled = total / cpus * IMBALANCE_PERCENT as f64 / 100.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to the number of CPUs"
        )]
        let limit = ((1.0 - scaled * scaled).max(0.0) * cpus) as u32;
        self.scan_limits[(low / self.config.cache_cores) as usize] = limit;
    }

    /// Load of a CPU in units of a thread's weight at nice 0, times 1024.
    fn load(&self, cpu: u32) -> u64 {
        [SERVICE, BEST_EFFORT]
            .map(|kind| u64::from(self.cpus[cpu as usize].threads[kind]) * self.load_of(cpu, kind))
            .iter()
            .sum()
    }

    /// Load of one thread of a kind (`task_h_load`).
    fn load_of(&self, cpu: u32, kind: usize) -> u64 {
        let threads = u64::from(self.cpus[cpu as usize].threads[kind]);
        if threads == 0 {
            return 0;
        }
        if self.layout == Layout::Groups {
            return u64::from(self.entities[self.group_entity(cpu, kind) as usize].weight) / threads;
        }
        let first = if kind == SERVICE { 0 } else { self.reader() + 1 };
        self.entities[first as usize].weight.into()
    }

    /// Takes a thread from the busiest CPU behind the same cache if that evens the loads out (`sched_balance_rq`).
    fn balance_within(&mut self, cpu: u32) -> bool {
        let (low, high) = self.cache_of(cpu);
        let mine = self.load(cpu);
        let mut busiest = (mine, cpu);
        let mut total = 0;
        for each in low..high {
            let load = self.load(each);
            total += load;
            if self.sets.crowded.has(each) && load > busiest.0 {
                busiest = (load, each);
            }
        }
        let average = total / u64::from(self.cache_size(cpu));
        let (theirs, from) = busiest;
        if from == cpu || theirs * 100 <= mine * IMBALANCE_PERCENT {
            return false;
        }
        let imbalance = theirs.saturating_sub(average).min(average.saturating_sub(mine));
        self.move_up_to(from, cpu, imbalance)
    }

    /// Moves a thread whose load is no more than the imbalance; each failure halves what it counts.
    fn move_up_to(&mut self, from: u32, cpu: u32, imbalance: u64) -> bool {
        self.charge(from);
        let failures = self.keepers[cpu as usize].balance.failures;
        let loads = [SERVICE, BEST_EFFORT].map(|kind| self.load_of(from, kind) >> failures.min(31));
        let found = self.oldest(from, |kind| loads[kind] <= imbalance);
        let Some(thread) = found else {
            self.keepers[cpu as usize].balance.failures += 1;
            return false;
        };
        self.keepers[cpu as usize].balance.failures = 0;
        self.counters.balance_moves += 1;
        self.dequeue(thread);
        self.arrive(thread, cpu);
        true
    }

    /// Compares the CPUs behind one cache with those behind others, once per number of CPUs in ms.
    fn balance_between(&mut self, cpu: u32) {
        let cache = (cpu / self.config.cache_cores) as usize;
        if self.cache_balance_ns.len() < 2 || self.now_ns < self.cache_balance_ns[cache] {
            return;
        }
        self.cache_balance_ns[cache] = self.now_ns + u64::from(self.config.cores) * 1_000_000 * BUSY_FACTOR;
        let Some(from) = self.sets.crowded.most(self.every_cpu()) else { return };
        let (theirs, mine) = (self.load(from), self.load(cpu));
        if theirs * 100 > mine * IMBALANCE_PERCENT {
            self.move_up_to(from, cpu, (theirs - mine) / 2);
        }
    }
}
