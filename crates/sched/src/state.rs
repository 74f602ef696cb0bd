//! What threads and CPUs are doing.

use crate::constant::{DECAY_PERIOD_NS, HALF_LIFE_PERIODS, LONGEST_DECAY};
use crate::fair::NONE;
use crate::record::{Conservation, Strictness};
use crate::timeline::NEVER;

/// Index of the service in pairs of counts.
pub(crate) const SERVICE: usize = 0;
/// Index of best-effort jobs in pairs of counts.
pub(crate) const BEST_EFFORT: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Blocked,
    Waiting,
    Running,
}

/// One line of a cache: what every event of a thread needs.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Thread {
    pub(crate) state: State,
    /// Where it is queued, or was last.
    pub(crate) cpu: u32,
    /// Where it last executed.
    pub(crate) executed_on: u32,
    /// Where it executed before that, as a hint for wake-ups.
    pub(crate) recent_cpu: u32,
    /// Until the request, or the iteration, is done.
    pub(crate) work_left_ns: u64,
    /// Until it works at all: switch and cold caches.
    pub(crate) overhead_left_ns: u64,
    /// Request that a worker serves, or how many the reader reads, [`NONE`] for none; number among the best-effort threads.
    pub(crate) task: u32,
    /// Time on a CPU so far.
    pub(crate) cpu_ns: u64,
    /// Since when it waits, if it does.
    pub(crate) wait: WaitBegin,
}

impl Thread {
    pub(crate) fn new(cpu: u32, task: u32) -> Self {
        Self {
            state: State::Blocked,
            cpu,
            executed_on: NONE,
            recent_cpu: NONE,
            work_left_ns: 0,
            overhead_left_ns: 0,
            task,
            cpu_ns: 0,
            wait: WaitBegin::default(),
        }
    }
}

/// What Linux's balancer wants to know of a thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recency {
    /// When it last stopped executing.
    pub(crate) stopped_ns: u64,
    /// Order in which the balancer looks at threads: when it was queued or picked last.
    pub(crate) touched_ns: u64,
}

/// One line of a cache: what every event of a CPU needs.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Cpu {
    /// Thread that executes, or [`NONE`].
    pub(crate) current: u32,
    /// Since when its time has not been charged.
    pub(crate) charged_ns: u64,
    /// When its request is done.
    pub(crate) complete_ns: u64,
    /// When it is to decide anew.
    pub(crate) decide_ns: u64,
    /// The slice of its thread is over.
    pub(crate) is_slice_over: bool,
    /// Threads that can execute, waiting or executing, by kind.
    pub(crate) threads: [u32; 2],
    pub(crate) use_average: UseAverage,
}

/// State of balancing and of the real-time share of a CPU.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    pub(crate) balance: Balance,
    pub(crate) real_time: RealTime,
}

impl Keeper {
    pub(crate) fn new(interval_ns: u64) -> Self {
        let balance = Balance { next_ns: interval_ns, interval_ns, failures: 0 };
        Self { balance, real_time: RealTime::default() }
    }
}

/// State of the periodic balancer.
#[derive(Debug, Clone)]
pub(crate) struct Balance {
    pub(crate) next_ns: u64,
    pub(crate) interval_ns: u64,
    pub(crate) failures: u32,
}

/// Use of the real-time share.
#[derive(Debug, Clone, Default)]
pub(crate) struct RealTime {
    pub(crate) period: u64,
    pub(crate) used_ns: u64,
    pub(crate) is_throttled: bool,
}

/// Average utilisation by fair threads, decayed as in Linux.
#[derive(Debug, Clone, Default)]
pub(crate) struct UseAverage {
    value: f64,
    since_ns: u64,
    busy_ns: u64,
}

impl UseAverage {
    #[inline]
    pub(crate) fn add(&mut self, busy_ns: u64) {
        self.busy_ns += busy_ns;
    }

    /// Gives the share of a CPU in use, 0 to 1; whole periods decay, as in Linux.
    pub(crate) fn at(&mut self, now_ns: u64, decay: &Decay) -> f64 {
        let periods = (now_ns - self.since_ns) / DECAY_PERIOD_NS;
        if periods > 0 {
            let passed_ns = periods * DECAY_PERIOD_NS;
            #[expect(clippy::cast_precision_loss, reason = "times below 2^52 ns")]
            let share = (self.busy_ns as f64 / passed_ns as f64).min(1.0);
            let kept = decay.over(periods);
            self.value = self.value * kept + share * (1.0 - kept);
            (self.since_ns, self.busy_ns) = (self.since_ns + passed_ns, 0);
        }
        self.value
    }
}

/// What is left of an average after some periods.
#[derive(Debug)]
pub(crate) struct Decay(Vec<f64>);

impl Decay {
    pub(crate) fn new() -> Self {
        let left = |periods: u16| libm::exp2(-f64::from(periods) / HALF_LIFE_PERIODS);
        Self((0..LONGEST_DECAY).map(left).collect())
    }

    fn over(&self, periods: u64) -> f64 {
        usize::try_from(periods).ok().and_then(|place| self.0.get(place)).copied().unwrap_or(0.0)
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            current: NONE,
            charged_ns: 0,
            complete_ns: NEVER,
            decide_ns: NEVER,
            is_slice_over: false,
            threads: [0; 2],
            use_average: UseAverage::default(),
        }
    }
}

impl Cpu {
    #[inline]
    pub(crate) fn attention_ns(&self) -> u64 {
        self.complete_ns.min(self.decide_ns)
    }

    #[inline]
    pub(crate) fn all_threads(&self) -> u32 {
        self.threads[SERVICE] + self.threads[BEST_EFFORT]
    }
}

/// Time integrals over all threads, and how long the rule was broken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) now_ns: u64,
    /// Threads executing now, by kind.
    pub(crate) running: [u64; 2],
    /// Threads waiting now, by kind.
    pub(crate) waiting: [u64; 2],
    pub(crate) running_ns: [u64; 2],
    pub(crate) waiting_ns: [u64; 2],
    /// Time in which a best-effort thread executed.
    best_effort_ns: u64,
    /// Time in which a CPU was idle.
    idle_ns: u64,
    pub(crate) strictness: Strictness,
    pub(crate) conservation: Conservation,
}

/// Where the clocks of the ledger stood when a thread began to wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitBegin {
    best_effort_ns: u64,
    idle_ns: u64,
}

impl Ledger {
    /// Moves on to a time.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64, cpus: u32) {
        let passed = now_ns - self.now_ns;
        if passed == 0 {
            return;
        }
        self.now_ns = now_ns;
        for kind in [SERVICE, BEST_EFFORT] {
            self.running_ns[kind] += self.running[kind] * passed;
            self.waiting_ns[kind] += self.waiting[kind] * passed;
        }
        if self.running[BEST_EFFORT] > 0 {
            self.best_effort_ns += passed;
            self.strictness.violation_ns += if self.waiting[SERVICE] > 0 { passed } else { 0 };
        }
        if self.running[SERVICE] + self.running[BEST_EFFORT] < u64::from(cpus) {
            self.idle_ns += passed;
            let waiting = self.waiting[SERVICE] + self.waiting[BEST_EFFORT];
            self.conservation.idle_while_waiting_ns += if waiting > 0 { passed } else { 0 };
        }
    }

    #[inline]
    pub(crate) fn begin_wait(&self) -> WaitBegin {
        WaitBegin { best_effort_ns: self.best_effort_ns, idle_ns: self.idle_ns }
    }

    /// A thread of a kind stops waiting.
    #[inline]
    pub(crate) fn end_wait(&mut self, kind: usize, begin: WaitBegin) {
        let idle_ns = self.idle_ns - begin.idle_ns;
        self.conservation.longest_ns = self.conservation.longest_ns.max(idle_ns);
        let broken_ns = self.best_effort_ns - begin.best_effort_ns;
        if kind == SERVICE && broken_ns > 0 {
            self.strictness.violations += 1;
            self.strictness.longest_ns = self.strictness.longest_ns.max(broken_ns);
        }
    }
}
