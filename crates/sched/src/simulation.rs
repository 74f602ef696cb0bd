//! A trial: clients, the service's pool of workers, best-effort jobs, phases; and the loop over events.

use crate::config::{Config, ConfigError, Policy};
use crate::constant::SAMPLE_NS;
use crate::fair::NONE;
use crate::machine::{Layout, Machine};
use crate::record::{Conservation, Counters, Iteration, Request, Sample, Strictness};
use crate::state::{BEST_EFFORT, SERVICE, State};
use crate::timeline::NEVER;

/// A simulation that can be advanced piece by piece.
///
/// # Examples
/// ```
/// use steelyard_sched::{Config, Policy, Simulation};
///
/// let config = Config { policy: Policy::Be, ..Config::default() };
/// let mut simulation = Simulation::new(config)?;
/// while simulation.advance(100_000) {}
/// assert!(simulation.requests().iter().all(|each| each.finished_ns > each.intended_ns));
/// assert!(simulation.counters().entry_successes > 0);
/// # Ok::<(), steelyard_sched::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    machine: Machine,
    samples: Vec<Sample>,
    sample_ns: u64,
    /// Next phase of the jobs: 0 not started, 1 running, 2 stopped.
    jobs_phase: usize,
    is_over: bool,
}

impl Simulation {
    /// Sets a simulation up.
    ///
    /// # Errors
    /// If a value is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            machine: Machine::new(config),
            samples: Vec::new(),
            sample_ns: 0,
            jobs_phase: 0,
            is_over: false,
        })
    }

    /// What is simulated.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.machine.config
    }

    /// Handles up to a number of events; says whether there is more to do.
    pub fn advance(&mut self, events: u64) -> bool {
        for _ in 0..events {
            if self.is_over {
                return false;
            }
            self.step();
        }
        !self.is_over
    }

    /// Time simulated so far [ns].
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.machine.now_ns
    }

    /// Requests in order of arrival.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.machine.pool.requests
    }

    /// Iterations of best-effort jobs, in the order in which the simulation came by them.
    #[must_use]
    pub fn iterations(&self) -> &[Iteration] {
        &self.machine.iterations
    }

    /// Samples, one every 100 ms.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.machine.counters
    }

    /// How long threads of the service waited while best-effort work ran.
    #[must_use]
    pub const fn strictness(&self) -> &Strictness {
        &self.machine.ledger.strictness
    }

    /// Sum of the waits of jobs under the class that were so long that the job counts as parked.
    #[must_use]
    pub const fn parked_ns(&self) -> u64 {
        self.machine.class.parked_ns
    }

    /// How long threads waited while a CPU was idle.
    #[must_use]
    pub const fn conservation(&self) -> &Conservation {
        &self.machine.ledger.conservation
    }

    /// Time of each thread on a CPU [ns]: workers first, then the reader, then jobs.
    #[must_use]
    pub fn thread_cpu_ns(&self) -> Vec<u64> {
        self.machine.threads.iter().map(|each| each.cpu_ns).collect()
    }

    fn step(&mut self) {
        let (cpu_ns, cpu) = self.machine.timeline.first();
        let tick_ns = self.machine.ticks.next_ns();
        let jobs_ns = self.next_phase_ns();
        let global_ns = self.machine.pool.arrival_ns.min(self.sample_ns).min(jobs_ns);
        let time_ns = cpu_ns.min(global_ns).min(tick_ns);
        let limit_ns = self.machine.config.phases.limit_ns;
        if time_ns >= limit_ns || self.is_all_done() {
            self.end(time_ns.min(limit_ns));
            return;
        }
        self.machine.ledger.advance(time_ns, self.machine.config.cores);
        self.machine.now_ns = time_ns;
        if time_ns < global_ns && time_ns < cpu_ns {
            let Some(cpu) = self.machine.ticks.pop() else { return };
            self.machine.counters.events += 1;
            self.machine.tick(cpu);
            return;
        }
        self.machine.counters.events += 1;
        if self.sample_ns == time_ns {
            self.sample();
        } else if jobs_ns == time_ns {
            self.change_phase();
        } else if self.machine.pool.arrival_ns == time_ns {
            self.machine.receive();
        } else {
            self.machine.attend(cpu);
        }
    }

    fn is_all_done(&self) -> bool {
        self.jobs_phase >= 2 && self.machine.pool.is_done()
    }

    fn end(&mut self, time_ns: u64) {
        let time_ns = if self.is_all_done() { self.machine.now_ns } else { time_ns };
        self.machine.ledger.advance(time_ns, self.machine.config.cores);
        self.machine.now_ns = time_ns;
        for cpu in 0..self.machine.config.cores {
            self.machine.charge(cpu);
        }
        self.sample();
        self.is_over = true;
    }

    fn next_phase_ns(&self) -> u64 {
        let phases = &self.machine.config.phases;
        match self.jobs_phase {
            0 => phases.best_effort_start_ns,
            1 => phases.best_effort_stop_ns,
            _ => NEVER,
        }
    }

    fn sample(&mut self) {
        let ledger = &self.machine.ledger;
        self.samples.push(Sample {
            time_ns: ledger.now_ns,
            service_cpu_ns: ledger.running_ns[SERVICE],
            service_wait_ns: ledger.waiting_ns[SERVICE],
            best_effort_cpu_ns: ledger.running_ns[BEST_EFFORT],
            best_effort_wait_ns: ledger.waiting_ns[BEST_EFFORT],
        });
        self.sample_ns += SAMPLE_NS;
    }

    fn change_phase(&mut self) {
        self.jobs_phase += 1;
        if self.machine.config.policy == Policy::None {
            return;
        }
        let first = self.machine.reader() + 1;
        let jobs = self.machine.config.best_effort.jobs * self.machine.config.best_effort.threads;
        for thread in first..first + jobs {
            if self.jobs_phase == 1 {
                self.machine.start(thread);
            } else {
                self.kill(thread);
            }
        }
    }

    fn kill(&mut self, thread: u32) {
        let machine = &mut self.machine;
        let cpu = machine.threads[thread as usize].cpu;
        machine.charge(cpu);
        let is_running = machine.threads[thread as usize].state == State::Running;
        machine.block(thread);
        if is_running || machine.layout != Layout::Caches {
            machine.ask_to_decide(cpu, machine.now_ns);
        }
    }
}

impl Machine {
    /// A request arrives.
    fn receive(&mut self) {
        let is_reader_asleep = self.pool.arrive(&self.config);
        let woken = if self.config.service.has_reader {
            is_reader_asleep.then(|| self.reader())
        } else {
            self.pool.read()
        };
        if let Some(thread) = woken {
            self.wake(thread);
        }
    }

    /// Gives a CPU what it wanted attention for.
    fn attend(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        self.charge(cpu);
        if self.cpus[cpu as usize].complete_ns <= now_ns {
            self.complete(cpu);
        }
        let each = &self.cpus[cpu as usize];
        if each.decide_ns <= now_ns || each.is_slice_over {
            self.decide(cpu);
        } else {
            self.refresh(cpu);
        }
    }

    /// A thread of the service has done what it had on its CPU: it takes what is next, or sleeps.
    fn complete(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let thread = self.cpus[cpu as usize].current;
        let done = std::mem::replace(&mut self.threads[thread as usize].task, NONE);
        if thread == self.reader() {
            for _ in 0..done {
                if let Some(worker) = self.pool.read() {
                    self.wake(worker);
                }
            }
        } else if done != NONE {
            self.pool.answer(done, now_ns);
        }
        if self.take_task(thread) {
            let work_ns = self.threads[thread as usize].work_left_ns;
            self.cpu(cpu).complete_ns = now_ns + work_ns;
            return;
        }
        if thread == self.reader() {
            self.pool.is_reader_asleep = true;
        } else {
            self.pool.sleep(thread);
        }
        self.block(thread);
        self.cpu(cpu).decide_ns = now_ns;
    }

    /// Lets a worker take the oldest request that was read, or the reader those that were not; says whether there are.
    pub(crate) fn take_task(&mut self, thread: u32) -> bool {
        let task = if thread == self.reader() {
            let unread = self.pool.unread();
            (unread > 0).then(|| (unread, u64::from(unread) * self.config.costs.read_ns))
        } else {
            self.pool.take(self.now_ns)
        };
        let Some((task, work_ns)) = task else { return false };
        let each = &mut self.threads[thread as usize];
        (each.task, each.work_left_ns) = (task, work_ns);
        true
    }

    /// Lets a thread wait for something that is no CPU.
    pub(crate) fn block(&mut self, thread: u32) {
        let cpu = self.threads[thread as usize].cpu;
        if self.threads[thread as usize].state == State::Running {
            let each = self.cpu(cpu);
            each.current = NONE;
            each.complete_ns = NEVER;
            self.recency[thread as usize].stopped_ns = self.now_ns;
        }
        let was = self.threads[thread as usize].state;
        self.set_state(thread, State::Blocked);
        match (self.layout, was) {
            (Layout::Caches, State::Running) => self.stop_by_class(cpu, thread),
            (Layout::Caches, _) => self.remove_job(thread),
            _ => self.dequeue(thread),
        }
    }
}
