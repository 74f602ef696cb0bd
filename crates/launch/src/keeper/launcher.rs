use std::io;
use std::path::Path;
use std::process;
use std::sync::Arc;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::getppid;
use steelyard_host::cgroup::{Grip, GroupLimits, Groups, Layout};
use steelyard_model::{Isolation, Limits, Placement, RunOutcome, RunSpec, SchedulingPolicy};

use super::arm::{Armed, MOST_ZYGOTES};
use super::cpu_time::Shortest;
use super::enforcer::{Enforcer, kernel_memory_limit};
use super::manners::Manners;
use super::stamps::SharedWatch;
use super::steal::StealMeter;
use super::swaps::Swaps;
use crate::barrier::{Barrier, Meeting};
use crate::board::SharedBoard;
use crate::clock;
use crate::control::Control;
use crate::error::{During, LaunchError};
use crate::perf::{Counter, Event, ExecWatch, Tracepoints, event_names, find_event};
use crate::scheduling::allowed_cpus;
use crate::zygote::Zygote;

/// Real-time time that a FIFO run gets out of each period of one second [us].
/// SOURCE: the kernel's default for the root group, `sched_rt_runtime_us`.
const REAL_TIME_RUNTIME_US: u32 = 940_000;

/// How a launcher is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LauncherOptions {
    /// Tells parallel workers apart: their sandboxes get different users.
    pub worker: u32,
    /// Also move the parent process where version 2 demands that the launcher's group is empty.
    pub is_guarded: bool,
    /// What the kernel calls the beginning and end of programs, for a launcher that may not look it up.
    pub tracepoints: Option<Tracepoints>,
}

impl Default for LauncherOptions {
    fn default() -> Self {
        Self { worker: process::id() % 4096, is_guarded: false, tracepoints: None }
    }
}

/// One iteration's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The record.
    pub outcome: RunOutcome,
    /// Error number of a failed `execve`.
    pub exec_errno: Option<i32>,
}

/// A resident launcher. Owns its groups, its zygote and whatever it executes; dropping it ends and
/// removes all of them.
///
/// The process must have one thread while it starts, and this thread must outlive the launcher.
#[derive(Debug)]
pub struct Launcher {
    // Fields drop in this order: the batch in flight, what ends it, the zygote, then the groups it lives in.
    pub(super) batch: Option<Batch>,
    pub(super) enforcer: Enforcer,
    pub(super) kernel_memory_limit: Option<u64>,
    pub(super) zygote: Zygote,
    pub(super) groups: Groups,
    pub(super) board: Arc<SharedBoard>,
    pub(super) signals: SignalFd,
    pub(super) steal: StealMeter,
    pub(super) swaps: Option<Swaps>,
    /// Stays open between the batches.
    watch: SharedWatch,
    /// Makes opening the counters of each run cheap; see [`Counter::hold`].
    _held_events: [Counter; 3],
    pub(super) residents: Vec<u32>,
    /// What the runs of this batch are ended by.
    pub(super) grip: Grip,
    /// Least memory seen in the version 1 groups between the runs of this batch [bytes].
    pub(super) resident_bytes: Option<u64>,
    pub(super) idle_pageable_bytes: u64,
    pub(super) steps: Steps,
    pub(super) tick_ns: u64,
    pub(super) is_stopping: bool,
    worker: u32,
    old_mask: SigSet,
    _manners: Manners,
}

/// Steps of the kernel before and after the program of this batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    /// From the call of `execve` to the start.
    pub(super) call: Shortest,
    /// From the end to the word of it.
    pub(super) burial: Shortest,
}

/// A specification that was prepared, with what is the same for all its iterations.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) spec: RunSpec,
    pub(super) degraded: Vec<String>,
    /// That its runs may use.
    pub(super) cpus: Vec<u32>,
    /// Sees every run begin and end.
    pub(super) watch: SharedWatch,
    armed: Option<Armed>,
}

impl Launcher {
    /// Claims groups and starts the zygote.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when the zygote cannot be started. A host without control groups, perf
    /// events or rights is none: every outcome says what was missing.
    pub fn start(options: &LauncherOptions) -> Result<Self, LaunchError> {
        let layout = Layout::discover(Path::new("/")).unwrap_or_default();
        // Orphans of a run become ours to end and to reap.
        prctl::set_child_subreaper(true).during("become a subreaper")?;
        let old_mask = block_signals()?;
        let mut family = vec![process::id()];
        if options.is_guarded {
            family.push(getppid().as_raw().cast_unsigned());
        }
        let mut groups = Groups::claim(&layout, process::id(), &family);
        let board = Arc::new(SharedBoard::new().during("map shared memory")?);
        let zygote = Zygote::start(&groups, &board)?;
        let enforcer = Enforcer::start(groups.resident().watch_memory().ok())?;
        let manners = Manners::adopt();
        groups.provide_spare()?;
        let signals =
            SignalFd::with_flags(&watched_signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
                .during("watch signals")?;
        Ok(Self {
            batch: None,
            enforcer,
            kernel_memory_limit: kernel_memory_limit(),
            residents: zygote.pids().collect(),
            grip: Grip::default(),
            resident_bytes: None,
            idle_pageable_bytes: 0,
            steps: Steps::default(),
            zygote,
            groups,
            board,
            signals,
            steal: StealMeter::new(),
            swaps: Swaps::open(),
            watch: open_watch(options.tracepoints),
            _held_events: [Event::CPU_MIGRATIONS, Event::MINOR_FAULTS, Event::MAJOR_FAULTS]
                .map(Counter::hold),
            tick_ns: clock::tick_ns(),
            is_stopping: false,
            worker: options.worker,
            old_mask,
            _manners: manners,
        })
    }

    /// `v2`, `hybrid`, `v1` or `none`: what is really used.
    #[must_use]
    pub fn cgroup(&self) -> &'static str {
        self.groups.kind().as_str()
    }

    /// What this host could not give, whatever is executed.
    #[must_use]
    pub fn degraded(&self) -> &[String] {
        self.groups.degraded()
    }

    /// Whether a signal asked this process to end. What was running then is reported as
    /// interrupted.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// A descriptor that becomes readable at SIGTERM, SIGINT and SIGHUP, for a caller that waits
    /// for other things between batches.
    #[must_use]
    pub fn signal_descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.signals.as_fd()
    }

    /// Makes everything ready for the batch up to the gate of its first iteration. A batch that was
    /// prepared before is given up.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when the specification cannot be executed on this host. A program that
    /// cannot be executed is reported in its outcome instead.
    pub fn prepare(&mut self, spec: &RunSpec) -> Result<(), LaunchError> {
        self.give_up();
        spec.validate()?;
        check_counters(spec)?;
        let spec = &bounded(spec);
        let mut degraded = self.groups.degraded().to_vec();
        degraded.extend(self.zygote.prepare(spec, self.worker)?);
        self.residents = self.find_residents();
        if matches!(spec.placement.policy, SchedulingPolicy::Fifo { .. }) {
            self.groups.resident_mut().allow_real_time(REAL_TIME_RUNTIME_US)?;
        }
        self.groups.apply(&group_limits(&spec.limits, &spec.placement))?;
        degraded.extend(self.unenforced(&spec.limits));
        self.resident_bytes = self.groups.resident().idle_memory_bytes();
        self.idle_pageable_bytes = self.groups.resident().pageable_bytes().unwrap_or(0);
        self.steps = Steps::default();
        let cpus = spec.placement.cpus.clone().unwrap_or_else(allowed_cpus);
        let watch = watch_programs(&self.watch, &cpus);
        self.steal.watch(cpus.clone());
        self.grip = self.groups.grip(&self.residents);
        let mut batch = Batch { spec: spec.clone(), degraded, cpus, watch, armed: None };
        batch.armed = Some(self.arm(&batch, spec.first_iteration)?);
        self.batch = Some(batch);
        Ok(())
    }

    /// Executes the prepared batch: one report per iteration. Answers how many there were.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when nothing was prepared, or the launcher itself failed.
    pub fn execute(
        &mut self,
        control: &mut dyn Control,
        sink: &mut dyn FnMut(Report),
    ) -> Result<u32, LaunchError> {
        let mut batch = self.batch.take().ok_or(LaunchError::Request {
            what: "go",
            reason: "no batch is prepared; send `prepare` first".into(),
        })?;
        let mut count = 0;
        for number in 0..batch.spec.iterations {
            let mut armed = match batch.armed.take() {
                Some(armed) => armed,
                None => self.arm(&batch, batch.spec.first_iteration + number)?,
            };
            let has_met = number > 0 || self.meet(&batch, &mut armed, control);
            if has_met {
                self.watch(&mut armed, &batch, control)?;
            }
            let is_over = armed.is_cancelled() || !has_met;
            let has_more = number + 1 < batch.spec.iterations && !is_over && !self.is_stopping;
            let following = has_more.then_some(batch.spec.first_iteration + number + 1);
            let (report, next) = self.settle(armed, &batch, following)?;
            count += 1;
            sink(report);
            batch.armed = next.map(|armed| self.complete(armed, &batch)).transpose()?;
            if !has_more {
                break;
            }
        }
        Ok(count)
    }

    /// Waits for the other launchers of the batch. A failure is kept for the outcome.
    fn meet(&mut self, batch: &Batch, armed: &mut Armed, control: &mut dyn Control) -> bool {
        let Some(spec) = &batch.spec.barrier else { return true };
        let meeting = Barrier::open(spec).and_then(|barrier| barrier.meet(|| self.has_cancelled(control)));
        match meeting {
            Ok(Meeting::AllArrived) => return true,
            Ok(Meeting::CallerGaveUp) => armed.cancel(),
            Err(error) => armed.fail(error.to_string()),
        }
        false
    }

    /// Ends a batch that was prepared and never released. Answers its id.
    pub fn give_up(&mut self) -> Option<String> {
        let batch = self.batch.take()?;
        if let Some(armed) = batch.armed {
            self.abandon(armed);
        }
        Some(batch.spec.id)
    }

    /// Id of the batch that waits at its gate.
    #[must_use]
    pub fn prepared_id(&self) -> Option<&str> {
        self.batch.as_ref().map(|batch| batch.spec.id.as_str())
    }

    /// Why the prepared batch's first child is not ready, if it is not.
    #[must_use]
    pub fn set_up_failure(&self) -> Option<&str> {
        self.batch.as_ref()?.armed.as_ref()?.failure.as_deref()
    }

    /// Control groups of this launcher.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Takes signals that came between batches; see [`is_stopping`](Self::is_stopping).
    pub fn take_idle_signals(&mut self) {
        self.read_signals();
    }

    /// Has another zygote take the place of one that has ended. The runs after it are as those before it.
    pub(super) fn replace_zygote(&mut self, spec: &RunSpec) -> Result<(), LaunchError> {
        let mut outcome = self.try_to_replace_zygote(spec);
        for _ in 1..MOST_ZYGOTES {
            if outcome.is_ok() || !self.zygote.has_ended() {
                break;
            }
            outcome = self.try_to_replace_zygote(spec);
        }
        outcome
    }

    fn try_to_replace_zygote(&mut self, spec: &RunSpec) -> Result<(), LaunchError> {
        self.zygote.replace()?;
        self.zygote.prepare(spec, self.worker)?;
        self.residents = self.find_residents();
        self.grip = self.groups.grip(&self.residents);
        Ok(())
    }

    fn find_residents(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.zygote.pids().collect();
        if self.groups.resident().is_empty() {
            found.extend(self.zygote.pids().flat_map(steelyard_host::cgroup::descendants));
        } else {
            found.extend(self.groups.resident().processes());
        }
        found
    }

    /// Limits that no mechanism of this host enforces, or only in part.
    fn unenforced(&self, limits: &Limits) -> Vec<String> {
        use steelyard_host::cgroup::Controller;
        let mut found = Vec::new();
        if limits.memory_bytes.is_some() && !self.groups.has(Controller::Memory) {
            found.push(
                "memory_bytes: no memory controller; each process is bounded by RLIMIT_DATA instead"
                    .to_owned(),
            );
        }
        if limits.process_count.is_some() && !self.groups.has(Controller::Pids) {
            found.push(
                "process_count: no pids controller; only a sandbox enforces it, by RLIMIT_NPROC".to_owned(),
            );
        }
        found
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.give_up();
        let _ = self.old_mask.thread_set_mask();
    }
}

/// Looks the events up; which CPUs are watched, a specification says.
fn open_watch(told: Option<Tracepoints>) -> SharedWatch {
    let reason = |error: io::Error| error.to_string();
    let tracepoints = told.map_or_else(Tracepoints::find, Ok).map_err(reason)?;
    ExecWatch::new(tracepoints).map(Arc::new).map_err(reason)
}

/// Watches these CPUs. A program that leaves them is stamped by less exact means.
fn watch_programs(watch: &SharedWatch, cpus: &[u32]) -> SharedWatch {
    let watch = watch.clone()?;
    watch.set_cpus(cpus).map(|()| watch).map_err(|error| error.to_string())
}

fn watched_signals() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set
}

fn block_signals() -> Result<SigSet, LaunchError> {
    let old = SigSet::thread_get_mask().during("read the signal mask")?;
    watched_signals().thread_block().during("block signals")?;
    Ok(old)
}

fn check_counters(spec: &RunSpec) -> Result<(), LaunchError> {
    match spec.counters.iter().find(|name| find_event(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            Err(LaunchError::Name { field: "counters", found: name.clone(), allowed: event_names() })
        }
    }
}

/// Processes and threads of a sandboxed run that is given no limit of them: so many can be ended in time, and
/// programs that start some threads for each CPU have enough.
const LEAST_BOUND: u64 = 64;
const BOUND_PER_CPU: u64 = 4;

/// The specification with the limit that a program nobody vouches for has in any case.
fn bounded(spec: &RunSpec) -> RunSpec {
    let mut bounded = spec.clone();
    if matches!(spec.isolation, Isolation::Sandbox(_)) {
        let bound = LEAST_BOUND.max(BOUND_PER_CPU * allowed_cpus().len() as u64);
        bounded.limits.process_count.get_or_insert(bound);
    }
    bounded
}

fn group_limits(limits: &Limits, placement: &Placement) -> GroupLimits {
    GroupLimits {
        memory_bytes: limits.memory_bytes,
        process_count: limits.process_count,
        cpus: placement.cpus.as_deref().map(GroupLimits::list),
        memory_nodes: placement.memory_nodes.as_deref().map(GroupLimits::list),
        is_maximal_weight: placement.maximal_weight,
    }
}
