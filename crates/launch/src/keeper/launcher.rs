use std::process;

use nix::sys::prctl;
use nix::sys::signal::SigSet;
use steelyard_host::cgroup::Groups;
use steelyard_model::RunSpec;

use super::arm;
use super::armed::Armed;
use super::batch::{self, Batch};
use super::enclosure::Enclosure;
use super::enforcer::Enforcer;
use super::meters::Meters;
use super::priority::KeeperPriority;
use super::record::Report;
use super::settle::Settlement;
use super::signals::{self, Signals};
use super::watch::Watch;
use crate::barrier::{Barrier, Meeting};
use crate::control::Control;
use crate::error::{During, LaunchError};
use crate::perf::Tracepoints;
use crate::scheduling::allowed_cpus;

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

/// A resident launcher. Owns its groups, its zygote and whatever it executes; dropping it ends and
/// removes all of them.
///
/// The process must have one thread while it starts, and this thread must outlive the launcher.
#[derive(Debug)]
pub struct Launcher {
    // Fields drop in this order: the batch in flight, what ends it, then the zygote and its groups.
    batch: Option<Batch>,
    enforcer: Enforcer,
    enclosure: Enclosure,
    signals: Signals,
    meters: Meters,
    old_mask: SigSet,
    _priority: KeeperPriority,
}

impl Launcher {
    /// Claims groups and starts the zygote.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when the zygote cannot be started. A host without control groups, perf
    /// events or rights is none: every outcome says what was missing.
    pub fn start(options: &LauncherOptions) -> Result<Self, LaunchError> {
        // Orphans of a run become ours to end and to reap.
        prctl::set_child_subreaper(true).during("become a subreaper")?;
        let old_mask = signals::block()?;
        let mut enclosure = Enclosure::start(options.worker, options.is_guarded)?;
        let enforcer = Enforcer::start(enclosure.groups().resident().watch_memory().ok())?;
        let priority = KeeperPriority::adopt();
        enclosure.groups_mut().provide_spare()?;
        Ok(Self {
            batch: None,
            enforcer,
            enclosure,
            signals: Signals::open()?,
            meters: Meters::open(options.tracepoints),
            old_mask,
            _priority: priority,
        })
    }

    /// `v2`, `hybrid`, `v1` or `none`: what is really used.
    #[must_use]
    pub fn cgroup(&self) -> &'static str {
        self.enclosure.cgroup()
    }

    /// What this host could not give, whatever is executed.
    #[must_use]
    pub fn degraded(&self) -> &[String] {
        self.enclosure.groups().degraded()
    }

    /// Whether a signal asked this process to end. What was running then is reported as
    /// interrupted.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.signals.is_stopping()
    }

    /// A descriptor that becomes readable at SIGTERM, SIGINT and SIGHUP, for a caller that waits
    /// for other things between batches.
    #[must_use]
    pub fn signal_descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.signals.descriptor()
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
        let spec = batch::checked(spec)?;
        let degraded = self.enclosure.prepare(&spec)?;
        let cpus = spec.placement.cpus.clone().unwrap_or_else(allowed_cpus);
        let watch = self.meters.prepare(&cpus);
        let first = spec.first_iteration;
        let mut batch = Batch { spec, degraded, cpus, watch, armed: None };
        batch.armed = Some(self.arm(&batch, first)?);
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
            let has_more = number + 1 < batch.spec.iterations && !is_over && !self.signals.is_stopping();
            let following = has_more.then_some(batch.spec.first_iteration + number + 1);
            let (report, next) = self.settle(&batch, armed, following)?;
            count += 1;
            sink(report);
            batch.armed = next.map(|armed| self.complete(&batch, armed)).transpose()?;
            if !has_more {
                break;
            }
        }
        Ok(count)
    }

    fn arm(&mut self, batch: &Batch, iteration: u32) -> Result<Armed, LaunchError> {
        arm::arm(&mut self.enclosure, &mut self.meters, batch, iteration)
    }

    fn complete(&mut self, batch: &Batch, armed: Armed) -> Result<Armed, LaunchError> {
        arm::complete(&mut self.enclosure, &mut self.meters, batch, armed)
    }

    fn watch(
        &mut self,
        armed: &mut Armed,
        batch: &Batch,
        control: &mut dyn Control,
    ) -> Result<(), LaunchError> {
        let Self { enclosure, enforcer, signals, .. } = self;
        Watch { enclosure, enforcer, signals, control, batch }.over(armed)
    }

    fn settle(
        &mut self,
        batch: &Batch,
        armed: Armed,
        following: Option<u32>,
    ) -> Result<(Report, Option<Armed>), LaunchError> {
        let Self { enclosure, meters, .. } = self;
        Settlement { enclosure, meters, batch }.settle(armed, following)
    }

    /// Waits for the other launchers of the batch. A failure is kept for the outcome.
    fn meet(&mut self, batch: &Batch, armed: &mut Armed, control: &mut dyn Control) -> bool {
        let Some(spec) = &batch.spec.barrier else { return true };
        let meeting =
            Barrier::open(spec).and_then(|barrier| barrier.meet(|| self.signals.has_cancelled(control)));
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
            self.enclosure.abandon(armed);
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
        self.enclosure.groups()
    }

    /// Takes signals that came between batches; see [`is_stopping`](Self::is_stopping).
    pub fn take_idle_signals(&mut self) {
        self.signals.read();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.give_up();
        let _ = self.old_mask.thread_set_mask();
    }
}
