//! Where threads go under the class, and who is next on a CPU.

use crate::constant::{
    CLASS_JOB_WEIGHT, CLASS_USUAL_WEIGHT, CREDIT_TURNS, JOB_SLICE_NS, MARGIN_NS, MOST_REST_NS,
    PARKED_AFTER_NS, VICTIMS_MOST,
};
use crate::fair::NONE;
use crate::machine::Machine;
use crate::state::{BEST_EFFORT, SERVICE, State};

impl Machine {
    /// Number of a job's thread among those.
    fn job_of(&self, thread: u32) -> u32 {
        thread - self.reader() - 1
    }

    fn cache_number(&self, cpu: u32) -> usize {
        (cpu / self.config.cache_cores) as usize
    }

    /// An idle CPU: the one before, one that shares its cache, any.
    fn idle_cpu(&self, before: u32) -> Option<u32> {
        let idle = &self.sets.idle;
        if idle.has(before) {
            return Some(before);
        }
        idle.next_from(before, self.cache_of(before)).or_else(|| idle.next_from(before, self.every_cpu()))
    }

    /// A CPU that executes a job, for a thread of the service that found none idle: the one before, by the local check,
    /// else by the entry check one that shares its cache, else any.
    fn claim(&mut self, before: u32) -> Option<u32> {
        if self.class.claimable.has(before) {
            return Some(before);
        }
        if !self.config.checks.entry {
            return None;
        }
        self.counters.entry_runs += 1;
        let (first, _) = self.cache_of(before);
        let found = self.class.claimable.next_from(first, self.every_cpu());
        self.counters.entry_successes += u64::from(found.is_some());
        found
    }

    /// A CPU decides anew as soon as the interrupt has got there, and is no longer free for others.
    fn interrupt(&mut self, cpu: u32) {
        self.sets.idle.put(cpu, false);
        self.class.claimable.put(cpu, false);
        self.ask_to_decide(cpu, self.now_ns + self.config.costs.interrupt_ns);
    }

    /// Sends a thread to a CPU, where it goes first.
    fn send(&mut self, thread: u32, cpu: u32) {
        self.class.locals[cpu as usize].sent = thread;
        self.threads[thread as usize].cpu = cpu;
        self.interrupt(cpu);
    }

    /// Finds a CPU for a thread of the service that can execute, or lets it wait.
    pub(crate) fn place_service(&mut self, thread: u32) {
        let home = self.threads[thread as usize].cpu;
        if let Some(cpu) = self.idle_cpu(home) {
            self.send(thread, cpu);
            return;
        }
        let claimed = self.claim(home);
        if let Some(cpu) = claimed
            && self.config.checks.local
        {
            self.send(thread, cpu);
            return;
        }
        let place_ns = self.class.order.place(thread, self.ready_service());
        let interrupted = claimed.or_else(|| {
            let may_interrupt = !self.class.order.is_veteran(thread);
            may_interrupt.then(|| self.interruptible(home, place_ns)).flatten()
        });
        let target = interrupted.unwrap_or(home);
        if self.config.checks.exit {
            let cache = self.cache_number(target);
            self.class.push(SERVICE, cache, (thread, place_ns), self.now_ns);
        } else {
            self.class.locals[target as usize].service.push(thread, place_ns);
        }
        if interrupted.is_some() {
            self.interrupt(target);
        }
    }

    /// Threads of the service that wait or execute.
    const fn ready_service(&self) -> u64 {
        self.ledger.running[SERVICE] + self.ledger.waiting[SERVICE]
    }

    /// A CPU whose thread of the service stands behind a place: the one before, else the last of some near it. It is not
    /// given again before it has decided.
    fn interruptible(&mut self, home: u32, place_ns: u64) -> Option<u32> {
        let latest_ns = place_ns + MARGIN_NS;
        let mut found = (latest_ns, home);
        if self.class.places[home as usize] <= latest_ns && self.config.checks.exit {
            let (first, _) = self.cache_of(home);
            for cpu in (first..self.config.cores).chain(0..first).take(VICTIMS_MOST as usize) {
                let running_ns = self.class.places[cpu as usize];
                if running_ns > found.0 {
                    found = (running_ns, cpu);
                }
            }
        }
        let place_ns = &mut self.class.places[found.1 as usize];
        let is_behind = *place_ns > latest_ns;
        if is_behind {
            *place_ns = 0;
        }
        is_behind.then_some(found.1)
    }

    /// Finds a CPU for a job that starts, or lets it wait.
    pub(crate) fn place_job(&mut self, thread: u32) {
        let (home, job) = (self.threads[thread as usize].cpu, self.job_of(thread));
        self.class.turns[job as usize].wait_start_ns = self.now_ns;
        match self.idle_cpu(home) {
            Some(cpu) => self.send(thread, cpu),
            None => self.queue_job(thread, home),
        }
    }

    /// Lets a job wait behind a cache, between two turns.
    fn queue_job(&mut self, thread: u32, cpu: u32) {
        let (cache, job) = (self.cache_number(cpu), self.job_of(thread));
        let here_ns = self.class.caches[cache].virtual_ns;
        let turn = &mut self.class.turns[job as usize];
        (turn.used_ns, turn.turns) = (0, 0);
        // Little credit for a sleep, and little debt from elsewhere.
        let most_ns = here_ns + virtual_time(2 * JOB_SLICE_NS);
        turn.virtual_ns = turn.virtual_ns.clamp(here_ns.saturating_sub(CREDIT_TURNS * JOB_SLICE_NS), most_ns);
        let virtual_ns = turn.virtual_ns;
        self.threads[thread as usize].cpu = cpu;
        self.class.push(BEST_EFFORT, cache, (thread, virtual_ns), self.now_ns);
    }

    /// A thread leaves its CPU though it could go on.
    fn put_back(&mut self, thread: u32, cpu: u32) {
        if self.kind_of(thread) == SERVICE {
            self.place_service(thread);
            return;
        }
        let (job, now_ns) = (self.job_of(thread), self.now_ns);
        let turn = &mut self.class.turns[job as usize];
        turn.wait_start_ns = now_ns;
        let has_rest = turn.used_ns > 0 && turn.left_ns().is_some();
        let local = &mut self.class.locals[cpu as usize];
        if has_rest && local.resting == NONE {
            (local.resting, local.rest_start_ns) = (thread, now_ns);
            self.class.rests.put(cpu, true);
        } else {
            self.queue_job(thread, cpu);
        }
        if let Some(idle) = self.idle_cpu(cpu) {
            self.interrupt(idle);
        }
    }

    /// Charges the thread of a CPU under the class; virtual time of jobs goes on.
    pub(crate) fn charge_by_class(&mut self, cpu: u32, thread: u32, passed_ns: u64) {
        let kind = self.kind_of(thread);
        if kind == BEST_EFFORT {
            let job = self.job_of(thread);
            let turn = &mut self.class.turns[job as usize];
            turn.used_ns += passed_ns;
            turn.virtual_ns += virtual_time(passed_ns);
        }
        if !self.config.checks.local {
            let most_ns = 10 * self.config.class_slice_ns;
            let kind_ns = &mut self.class.locals[cpu as usize].kind_ns;
            kind_ns[kind] += passed_ns;
            // A kind that was away for long does not come back to the CPU alone.
            kind_ns[1 - kind] = kind_ns[1 - kind].max(kind_ns[kind].saturating_sub(most_ns));
        }
    }

    /// A job is killed while it waits.
    pub(crate) fn remove_job(&mut self, thread: u32) {
        let cpu = self.threads[thread as usize].cpu;
        let local = &mut self.class.locals[cpu as usize];
        if local.sent == thread {
            local.sent = NONE;
        } else if local.resting == thread {
            self.class.pop_rest(cpu);
        } else {
            let cache = self.cache_number(cpu);
            let is_here = self.class.caches[cache].jobs.remove(thread);
            self.class.queued[BEST_EFFORT] -= u32::from(is_here);
        }
    }

    /// A tick: ends a slice, and a rest that services have kept a job in for long.
    pub(crate) fn tick_by_class(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        if self.class.rests.has(cpu)
            && now_ns - self.class.locals[cpu as usize].rest_start_ns >= MOST_REST_NS
            && let Some(resting) = self.class.pop_rest(cpu)
        {
            self.queue_job(resting, cpu);
        }
        if now_ns >= self.class.slice_end_ns[cpu as usize] {
            self.charge(cpu);
            self.decide(cpu);
        }
    }

    /// Decides what a CPU executes next under the class.
    pub(crate) fn decide_by_class(&mut self, cpu: u32) {
        let before = self.cpus[cpu as usize].current;
        let sent = std::mem::replace(&mut self.class.locals[cpu as usize].sent, NONE);
        let next = if sent == NONE { self.dispatch(cpu, before) } else { sent };
        if next == before {
            if next == NONE {
                self.idle_by_class(cpu);
            } else {
                self.keep(cpu, next);
            }
            return;
        }
        self.counters.switches += 1;
        if before != NONE {
            self.stop_by_class(cpu, before);
            self.stop(cpu);
            self.put_back(before, cpu);
        }
        if next == NONE {
            self.idle_by_class(cpu);
        } else {
            let thread = &mut self.threads[next as usize];
            self.counters.migrations += u64::from(thread.executed_on != cpu && thread.executed_on != NONE);
            thread.cpu = cpu;
            self.execute(cpu, next);
            self.class.locals[cpu as usize].run_start_ns = self.now_ns;
            if self.kind_of(next) == SERVICE {
                self.begin_turn(cpu, next, next != sent);
            }
            self.keep(cpu, next);
        }
        if sent != NONE && self.kind_of(sent) == BEST_EFFORT && self.is_service_near(cpu) {
            self.counters.self_kicks += 1;
            self.interrupt(cpu);
        }
    }

    fn idle_by_class(&mut self, cpu: u32) {
        self.sets.idle.put(cpu, true);
        self.ticks.stop(cpu);
    }

    /// Whether a thread of the service waits that a CPU would take.
    fn is_service_near(&self, cpu: u32) -> bool {
        self.class.queued[SERVICE] > 0 || self.class.locals[cpu as usize].service.len() > 0
    }

    /// A thread executes on a CPU, for a slice or what is left of its turn.
    fn keep(&mut self, cpu: u32, thread: u32) {
        let now_ns = self.now_ns;
        if self.kind_of(thread) == SERVICE {
            self.class.slice_end_ns[cpu as usize] = now_ns + self.class.order.slice_ns(thread);
            return;
        }
        let (job, cache) = (self.job_of(thread), self.cache_number(cpu));
        let turn = &mut self.class.turns[job as usize];
        let waited_ns = now_ns - turn.wait_start_ns;
        if waited_ns > PARKED_AFTER_NS && self.class.locals[cpu as usize].run_start_ns == now_ns {
            self.class.parked_ns += waited_ns;
        }
        let behind = &mut self.class.caches[cache].virtual_ns;
        *behind = (*behind).max(turn.virtual_ns);
        let left_ns = turn.left_ns().unwrap_or(JOB_SLICE_NS);
        self.class.slice_end_ns[cpu as usize] = now_ns + left_ns;
        self.class.claimable.put(cpu, true);
    }

    /// A thread of the service begins to execute, from a queue or not.
    fn begin_turn(&mut self, cpu: u32, thread: u32, is_from_queue: bool) {
        let ready = self.ready_service();
        if is_from_queue {
            self.class.order.choose(thread);
        }
        self.class.places[cpu as usize] = self.class.order.begin(thread, ready);
        self.class.locals[cpu as usize].charged_ns = self.now_ns;
    }

    /// The thread of a CPU leaves it, or sleeps.
    pub(crate) fn stop_by_class(&mut self, cpu: u32, thread: u32) {
        self.class.claimable.put(cpu, false);
        if self.kind_of(thread) == SERVICE {
            self.class.places[cpu as usize] = 0;
            self.charge_order(cpu, thread);
            if self.threads[thread as usize].state == State::Blocked {
                self.class.order.sleep(thread);
            }
        }
    }

    /// Charges the thread of the service on a CPU in its order: as in the class, only where it stops or may have to.
    fn charge_order(&mut self, cpu: u32, thread: u32) {
        let since_ns = &mut self.class.locals[cpu as usize].charged_ns;
        let used_ns = self.now_ns - std::mem::replace(since_ns, self.now_ns);
        self.class.order.charge(thread, used_ns);
    }

    /// Whether the thread of the service on a CPU keeps it, since nobody who waits there stands before it (`is_next`).
    fn is_next(&mut self, cpu: u32, thread: u32) -> bool {
        self.charge_order(cpu, thread);
        let place_ns = self.class.order.place(thread, self.ready_service());
        let first = if self.config.checks.exit {
            self.class.caches[self.cache_number(cpu)].service.first()
        } else {
            self.class.locals[cpu as usize].service.first()
        };
        if let Some((_, first_ns)) = first {
            if first_ns < place_ns {
                return false;
            }
            self.class.order.choose(thread);
        }
        self.class.places[cpu as usize] = place_ns;
        true
    }

    /// Chooses who is next on a CPU (`be_dispatch`); [`NONE`]: nobody.
    fn dispatch(&mut self, cpu: u32, before: u32) -> u32 {
        let kind = (before != NONE).then(|| self.kind_of(before));
        let job = if kind == Some(BEST_EFFORT) { before } else { NONE };
        let kind_ns = self.class.locals[cpu as usize].kind_ns;
        if !self.config.checks.local
            && kind_ns[BEST_EFFORT] < kind_ns[SERVICE]
            && let Some(next) = self.take_job(cpu, job)
        {
            self.counters.be_picks += 1;
            return next;
        }
        let (cache, now_ns, has_exit) = (self.cache_number(cpu), self.now_ns, self.config.checks.exit);
        if has_exit {
            self.class.set_back(cache);
        }
        let mut next = if has_exit { self.class.even_out(SERVICE, cache, now_ns) } else { None };
        if next.is_none() && kind == Some(SERVICE) && self.is_next(cpu, before) {
            return before;
        }
        if next.is_none() {
            next = self.take_service(cpu);
        }
        if let Some(next) = next {
            self.note_pick(cpu, next, job);
            return next;
        }
        if has_exit && let Some(next) = self.class.pop_elsewhere(SERVICE, cache, now_ns) {
            self.note_pick(cpu, next, job);
            return next;
        }
        if let Some(next) = self.take_job(cpu, job) {
            self.counters.be_picks += 1;
            self.counters.exit_runs += u64::from(has_exit);
            return next;
        }
        if has_exit { NONE } else { self.balance_service() }
    }

    /// Takes a thread of the service that waits behind the cache of a CPU, or at the CPU.
    fn take_service(&mut self, cpu: u32) -> Option<u32> {
        if !self.config.checks.exit {
            return self.class.locals[cpu as usize].service.pop();
        }
        self.class.pop(SERVICE, self.cache_number(cpu), self.now_ns)
    }

    /// Counts what the pick of a thread of the service was: local, or an exit check.
    fn note_pick(&mut self, cpu: u32, next: u32, job: u32) {
        if self.threads[next as usize].cpu == cpu {
            self.counters.local_lc_picks += 1;
            return;
        }
        let class = &self.class;
        let has_jobs =
            job != NONE || class.rests.has(cpu) || class.len(BEST_EFFORT, self.cache_number(cpu)) > 0;
        self.counters.exit_runs += u64::from(has_jobs);
        self.counters.exit_successes += u64::from(has_jobs);
    }

    /// Chooses among the jobs (`take_be`); `before` is the job that executes, or [`NONE`].
    fn take_job(&mut self, cpu: u32, before: u32) -> Option<u32> {
        let (cache, now_ns) = (self.cache_number(cpu), self.now_ns);
        if let Some(next) = self.class.even_out(BEST_EFFORT, cache, now_ns) {
            return Some(next);
        }
        if before != NONE {
            let job = self.job_of(before);
            if self.class.turns[job as usize].left_ns().is_some() {
                return Some(before);
            }
            if !self.class.rests.has(cpu) && !self.class.is_anybody_due(cache, job) {
                let turn = &mut self.class.turns[job as usize];
                (turn.used_ns, turn.turns) = (0, turn.turns + 1);
                return Some(before);
            }
        }
        if let Some(next) = self.class.pop_rest(cpu).or_else(|| self.class.pop(BEST_EFFORT, cache, now_ns)) {
            return Some(next);
        }
        if before != NONE {
            return Some(before);
        }
        let elsewhere = self.class.pop_elsewhere(BEST_EFFORT, cache, now_ns);
        elsewhere.or_else(|| {
            let (first, _) = self.cache_of(cpu);
            let other = self.class.rests.next_from(first, self.every_cpu())?;
            self.class.pop_rest(other)
        })
    }

    /// Without the exit check: an idle CPU takes a thread of the service from the CPU where most wait.
    fn balance_service(&mut self) -> u32 {
        let lengths = self.class.locals.iter().map(|each| each.service.len());
        let longest = lengths.enumerate().rev().max_by_key(|&(_, length)| length);
        let from = longest.map(|(from, _)| from);
        from.and_then(|from| self.class.locals[from].service.pop()).unwrap_or(NONE)
    }
}

/// Virtual time of a job that had a CPU for a time.
const fn virtual_time(time_ns: u64) -> u64 {
    time_ns * CLASS_USUAL_WEIGHT / CLASS_JOB_WEIGHT
}
