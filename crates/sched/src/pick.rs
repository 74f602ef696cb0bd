//! What a CPU executes next.

use crate::config::Policy;
use crate::constant::{REAL_TIME_PERIOD_NS, REAL_TIME_RUNTIME_NS};
use crate::fair::NONE;
use crate::machine::{Layout, Machine};
use crate::state::{BEST_EFFORT, RealTime, SERVICE, State};
use crate::timeline::NEVER;

impl Machine {
    /// Decides what a CPU executes next, and switches to it (`__schedule`).
    ///
    /// The time of the thread that executes must have been charged.
    pub(crate) fn decide(&mut self, cpu: u32) {
        self.counters.scheduling_events += 1;
        let each = self.cpu(cpu);
        each.decide_ns = NEVER;
        each.is_slice_over = false;
        if self.layout == Layout::Caches {
            self.decide_by_class(cpu);
            self.refresh(cpu);
            return;
        }
        let before = self.cpus[cpu as usize].current;
        let mut next = self.choose(cpu);
        if next == NONE && self.fill_idle(cpu) {
            next = self.choose(cpu);
        }
        self.count_pick(cpu, next);
        if next != before {
            self.switch(cpu, before, next);
        } else if next == NONE {
            self.ticks.stop(cpu);
        }
        self.refresh(cpu);
    }

    fn count_pick(&mut self, cpu: u32, next: u32) {
        if next == NONE {
            return;
        }
        let behind = self.cpus[cpu as usize].threads[BEST_EFFORT];
        match self.kind_of(next) {
            SERVICE => self.counters.local_lc_picks += u64::from(behind > 0),
            _ => self.counters.be_picks += 1,
        }
    }

    /// Chooses among what waits here.
    fn choose(&mut self, cpu: u32) -> u32 {
        match self.layout {
            Layout::Groups => self.choose_in_groups(cpu),
            Layout::Classes => self.choose_real_time(cpu),
            Layout::Flat | Layout::Caches => self.queues[3 * cpu as usize].choose(&self.entities),
        }
    }

    fn choose_in_groups(&self, cpu: u32) -> u32 {
        let group = self.queues[3 * cpu as usize].choose(&self.entities);
        if group == NONE {
            return NONE;
        }
        let kind = usize::from(group != self.group_entity(cpu, SERVICE));
        self.queues[self.queue_of(cpu, kind)].choose(&self.entities)
    }

    /// Real-time threads first, in one order for all CPUs.
    fn choose_real_time(&mut self, cpu: u32) -> u32 {
        let service = self.queue_of(cpu, SERVICE);
        if self.keepers[cpu as usize].real_time.is_throttled {
            self.return_to_line(cpu);
        } else if self.queues[service].is_empty()
            && let Some(first) = self.line.pop_front()
        {
            self.count_migration(first, cpu);
            self.enqueue(first, cpu);
        }
        let next = self.queues[service].choose(&self.entities);
        if next != NONE {
            return next;
        }
        self.queues[self.queue_of(cpu, BEST_EFFORT)].choose(&self.entities)
    }

    /// Lets the thread of the service on a throttled CPU wait at the head of the line.
    fn return_to_line(&mut self, cpu: u32) {
        let queue = &self.queues[self.queue_of(cpu, SERVICE)];
        let held = if queue.current == NONE { queue.waiting.first().copied() } else { Some(queue.current) };
        let Some(thread) = held else { return };
        if self.cpus[cpu as usize].current == thread {
            self.stop(cpu);
        }
        self.dequeue(thread);
        self.line.push_front(thread);
    }

    pub(crate) fn count_migration(&mut self, thread: u32, cpu: u32) {
        let from = self.threads[thread as usize].cpu;
        self.counters.migrations += u64::from(from != cpu);
    }

    /// Lets the thread of a CPU wait, which keeps its place in the queue.
    pub(crate) fn stop(&mut self, cpu: u32) {
        let each = &mut self.cpus[cpu as usize];
        let thread = std::mem::replace(&mut each.current, NONE);
        each.complete_ns = NEVER;
        self.recency[thread as usize].stopped_ns = self.now_ns;
        if self.threads[thread as usize].state == State::Running {
            self.set_state(thread, State::Waiting);
        }
    }

    fn switch(&mut self, cpu: u32, before: u32, next: u32) {
        self.counters.switches += 1;
        if before != NONE && self.cpus[cpu as usize].current == before {
            self.stop(cpu);
        }
        if next == NONE {
            self.put_back_all(cpu);
            self.ticks.stop(cpu);
            self.note(cpu);
            return;
        }
        self.take(cpu, next);
        self.recency[next as usize].touched_ns = self.now_ns;
        self.execute(cpu, next);
        self.note(cpu);
    }

    /// Lets a thread execute, at the price of a switch.
    pub(crate) fn execute(&mut self, cpu: u32, next: u32) {
        let costs = self.config.costs;
        let now_ns = self.now_ns;
        let is_service = self.kind_of(next) == SERVICE;
        if is_service && self.threads[next as usize].task == NONE {
            // Where another worker was faster it finds none, and sleeps as soon as it executes.
            self.take_task(next);
        }
        let thread = &mut self.threads[next as usize];
        let is_moved = thread.executed_on != cpu && thread.executed_on != NONE;
        if thread.executed_on != cpu {
            (thread.recent_cpu, thread.executed_on) = (thread.executed_on, cpu);
        }
        let cost_ns = costs.switch_ns + if is_moved { costs.migration_ns } else { 0 };
        thread.overhead_left_ns = thread.overhead_left_ns.max(cost_ns);
        let length_ns = thread.overhead_left_ns + thread.work_left_ns;
        let each = self.cpu(cpu);
        each.current = next;
        each.charged_ns = now_ns;
        each.complete_ns = if is_service { now_ns + length_ns } else { NEVER };
        self.ticks.start(cpu, now_ns);
        self.set_state(next, State::Running);
    }

    fn put_back_all(&mut self, cpu: u32) {
        let root = 3 * cpu as usize;
        for queue in &mut self.queues[root..root + 3] {
            queue.put_back();
        }
    }

    /// Makes a thread, and its group, the one that executes in its queues.
    fn take(&mut self, cpu: u32, next: u32) {
        let kind = self.kind_of(next);
        let queue = self.queue_of(cpu, kind);
        let other = self.queue_of(cpu, 1 - kind);
        if other != queue {
            self.queues[other].put_back();
        }
        self.queues[queue].take(next, &mut self.entities);
        if self.layout == Layout::Groups {
            let group = self.group_entity(cpu, kind);
            self.queues[3 * cpu as usize].take(group, &mut self.entities);
        }
    }

    /// A timer tick (`sched_tick`).
    pub(crate) fn tick(&mut self, cpu: u32) {
        self.counters.ticks += 1;
        if self.layout == Layout::Caches {
            self.tick_by_class(cpu);
            return;
        }
        self.charge(cpu);
        if self.layout == Layout::Groups {
            for kind in [SERVICE, BEST_EFFORT] {
                if self.cpus[cpu as usize].threads[kind] > 0 {
                    self.reweigh_group(cpu, kind);
                }
            }
        }
        if self.config.policy == Policy::Fifo {
            self.watch_real_time(cpu);
        }
        self.balance_at_tick(cpu);
        if self.cpus[cpu as usize].is_slice_over {
            self.decide(cpu);
        }
    }

    /// Throttles the service once it has used its share while best-effort threads wait (`sched_rt_runtime_exceeded`).
    fn watch_real_time(&mut self, cpu: u32) {
        let period = self.now_ns / REAL_TIME_PERIOD_NS;
        let each = &mut self.cpus[cpu as usize];
        let real_time = &mut self.keepers[cpu as usize].real_time;
        if real_time.period != period {
            each.is_slice_over |= real_time.is_throttled;
            *real_time = RealTime { period, ..Default::default() };
            return;
        }
        let is_wanted = each.threads[BEST_EFFORT] > 0 && each.threads[SERVICE] > 0;
        if is_wanted && !real_time.is_throttled && real_time.used_ns >= REAL_TIME_RUNTIME_NS {
            real_time.is_throttled = true;
            each.is_slice_over = true;
            self.counters.throttled += 1;
        }
    }
}
