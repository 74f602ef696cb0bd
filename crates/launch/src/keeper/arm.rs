//! From nothing to a child that waits at its gate.

use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use steelyard_host::cgroup::{IdleMemory, Leaf, Sample};
use steelyard_model::Isolation;

use super::launcher::{Batch, Launcher};
use super::stamps::Stamper;
use super::streams::Streams;
use super::swaps::Swaps;
use super::verdict::Cause;
use crate::board::Progress;
use crate::clock::monotonic_ns;
use crate::error::{During, LaunchError};
use crate::perf::{Counter, Event, find_event};
use crate::sandbox::Refusals;
use crate::zygote::ChildDescriptors;

/// A child that is not ready by then never will be.
const SET_UP_PATIENCE: Duration = Duration::from_secs(30);
/// So long the memory of a run that is over may take to be freed.
const BURIAL_PATIENCE: Duration = Duration::from_secs(2);
const BURIAL_LOOK: Duration = Duration::from_millis(1);
/// So many zygotes may end one after the other while they set up one run.
pub(super) const MOST_ZYGOTES: u32 = 3;
/// How often a silent child is looked after.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// A run from its clone to its end.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) iteration: u32,
    pub(super) begin_ns: u64,
    pub(super) gate_ns: u64,
    pub(super) waited_ns: u64,
    /// `None` once it was reaped, or when it never existed.
    pub(super) pid: Option<Pid>,
    pub(super) leaf: Option<Leaf>,
    idle: Option<IdleMemory>,
    pub(super) streams: Streams,
    pub(super) watched: Option<Watched>,
    pub(super) cause: Option<Cause>,
    /// Why the enforcer has ended it, which its groups are marked by.
    pub(super) enforced: Option<Cause>,
    pub(super) is_stopped: bool,
    pub(super) has_records_ended: bool,
    /// Why the program did not start.
    pub(super) failure: Option<String>,
    pub(super) degraded: Vec<String>,
}

/// What is attached to a child that is ready.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) pidfd: OwnedFd,
    pub(super) stamper: Stamper,
    pub(super) counters: Counters,
    pub(super) schedstat: Option<File>,
    /// Namespaces of the run's own, held so that the keeper takes them down and not the process as it ends.
    pub(super) _namespaces: [Option<File>; 2],
    pub(super) before: Sample,
    pub(super) steal_before_ns: Option<u64>,
    pub(super) swapped_before: Option<u64>,
    /// Where refused system calls of a sandboxed run are heard.
    pub(super) refusals: Option<Refusals>,
}

/// Counters of the tree.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) task_clock: Arc<Counter>,
    pub(super) migrations: Counter,
    pub(super) minor_faults: Counter,
    pub(super) major_faults: Counter,
    pub(super) named: Vec<(String, Counter)>,
}

impl Counters {
    fn open(pid: i32, names: &[String]) -> Self {
        let open = |name: &String| Some((name.clone(), Counter::open(find_event(name)?, pid)));
        Self {
            task_clock: Arc::new(Counter::open(Event::TASK_CLOCK, pid)),
            migrations: Counter::open(Event::CPU_MIGRATIONS, pid),
            minor_faults: Counter::open(Event::MINOR_FAULTS, pid),
            major_faults: Counter::open(Event::MAJOR_FAULTS, pid),
            named: names.iter().filter_map(open).collect(),
        }
    }
}

impl Armed {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cause == Some(Cause::Cancelled)
    }

    pub(super) fn cancel(&mut self) {
        self.cause = Some(Cause::Cancelled);
    }

    pub(super) fn fail(&mut self, message: String) {
        self.failure = Some(message);
    }
}

impl Launcher {
    /// Sets up one iteration. A child that fails in its set-up is a result, not an error.
    pub(super) fn arm(&mut self, batch: &Batch, iteration: u32) -> Result<Armed, LaunchError> {
        let begin_ns = monotonic_ns();
        let mut armed = self.begin(batch, iteration)?;
        if let Err(error) = self.groups.provide_spare() {
            self.give_up_begun(armed);
            return Err(error.into());
        }
        armed.begin_ns = begin_ns;
        self.complete(armed, batch)
    }

    /// Has the zygote begin a child, and does not wait for it. Whatever the version 1 groups and
    /// the board say of the run before has to be read by now.
    pub(super) fn begin(&mut self, batch: &Batch, iteration: u32) -> Result<Armed, LaunchError> {
        if self.zygote.has_ended() {
            self.replace_zygote(&batch.spec)?;
        }
        let leaf = self.groups.take_leaf()?;
        let streams = Streams::open(&batch.spec)?;
        if let Some(limit_bytes) = batch.spec.limits.memory_bytes {
            self.await_room(limit_bytes);
        }
        let idle = self.reset_residents();
        self.board.clear();
        let armed = Armed {
            iteration,
            begin_ns: 0,
            gate_ns: 0,
            waited_ns: 0,
            pid: None,
            leaf,
            idle,
            streams,
            watched: None,
            cause: None,
            enforced: None,
            is_stopped: false,
            has_records_ended: false,
            failure: None,
            degraded: Vec::new(),
        };
        let spawned = self.zygote.spawn(&ChildDescriptors {
            input: armed.streams.input.as_fd(),
            output: armed.streams.output.child_end(),
            error: armed.streams.error.child_end(),
            metrics: armed.streams.report.as_ref().map(AsFd::as_fd),
            leaf: armed.leaf.as_ref().map(Leaf::directory),
        });
        match spawned {
            // That it has ended is seen, and made good, by who waits for the child.
            Err(error) if !self.zygote.has_ended() => Err(error),
            _ => Ok(armed),
        }
    }

    /// The child that was begun becomes ready: it waits at its gate, and everything is attached.
    pub(super) fn complete(&mut self, armed: Armed, batch: &Batch) -> Result<Armed, LaunchError> {
        let iteration = armed.iteration;
        let mut outcome = self.try_complete(armed, batch);
        for _ in 1..MOST_ZYGOTES {
            if outcome.is_ok() || !self.zygote.has_ended() {
                break;
            }
            let again = self.begin(batch, iteration);
            outcome = again.and_then(|armed| self.try_complete(armed, batch));
        }
        outcome
    }

    fn try_complete(&mut self, mut armed: Armed, batch: &Batch) -> Result<Armed, LaunchError> {
        if armed.begin_ns == 0 {
            // Time before this is part of the run that was recorded meanwhile.
            armed.begin_ns = monotonic_ns();
        }
        (armed.gate_ns, armed.waited_ns) = (armed.begin_ns, armed.begin_ns);
        let outcome = self.await_child(&mut armed).and_then(|()| match armed.failure {
            Some(_) => Ok(()),
            None => self.attach(&mut armed, batch).map(|watched| armed.watched = Some(watched)),
        });
        match outcome {
            Ok(()) => Ok(armed),
            Err(error) => {
                self.abandon(armed);
                Err(error)
            }
        }
    }

    /// Ends a child that was begun and is not wanted any more.
    pub(super) fn give_up_begun(&mut self, mut armed: Armed) {
        let _ = self.await_child(&mut armed);
        self.abandon(armed);
    }

    /// Waits until the kernel has taken most of what a tree left that ran out of memory: until then the zygote
    /// itself is what a lack of memory would end.
    fn await_room(&self, limit_bytes: u64) {
        let before_bytes = self.resident_bytes.unwrap_or(0);
        let begin = Instant::now();
        while begin.elapsed() < BURIAL_PATIENCE
            && let Some(now_bytes) = self.groups.resident().idle_memory_bytes()
            && now_bytes.saturating_sub(before_bytes) > limit_bytes / 2
        {
            std::thread::sleep(BURIAL_LOOK);
        }
    }

    /// Frees what earlier runs left in the version 1 groups, and tells what is in use.
    fn reset_residents(&mut self) -> Option<IdleMemory> {
        let resident = self.groups.resident();
        resident.reset(self.idle_pageable_bytes);
        let now_bytes = resident.idle_memory_bytes()?;
        let resident_bytes = self.resident_bytes.map_or(now_bytes, |least| least.min(now_bytes));
        self.resident_bytes = Some(resident_bytes);
        Some(IdleMemory { resident_bytes, left_bytes: now_bytes - resident_bytes })
    }

    fn await_child(&self, armed: &mut Armed) -> Result<(), LaunchError> {
        let progress = self.wait_until_ready()?;
        if self.board.has_entered_slowly() {
            armed.degraded.push(
                "CLONE_INTO_CGROUP: refused by this kernel or container; the run was moved into its group"
                    .into(),
            );
        }
        armed.pid = Some(Pid::from_raw(self.board.pid())).filter(|pid| pid.as_raw() > 0);
        if progress != Progress::Ready {
            armed.failure = Some(self.reason_of_failure(progress));
        }
        Ok(())
    }

    fn wait_until_ready(&self) -> Result<Progress, LaunchError> {
        let begin = Instant::now();
        loop {
            match self.board.wait_for_progress(LOOK_AFTER) {
                Progress::SettingUp => {}
                other => return Ok(other),
            }
            let pid = self.board.pid();
            if pid > 0 && has_ended(Pid::from_raw(pid)) {
                return Ok(self.board.progress());
            }
            if self.zygote.has_ended() {
                // A child may have got on until then.
                return match self.board.progress() {
                    Progress::SettingUp => {
                        Err(LaunchError::Zygote { what: "ended while it set a run up".into() })
                    }
                    other => Ok(other),
                };
            }
            if begin.elapsed() > SET_UP_PATIENCE {
                return Err(LaunchError::Zygote {
                    what: format!("set nothing up within {} s", SET_UP_PATIENCE.as_secs()),
                });
            }
        }
    }

    fn reason_of_failure(&self, progress: Progress) -> String {
        if progress == Progress::Failed {
            return self.board.failure().1;
        }
        "the child was killed while it was set up; a memory limit below 1 MiB does that".to_owned()
    }

    fn attach(&mut self, armed: &mut Armed, batch: &Batch) -> Result<Watched, LaunchError> {
        let pid = self.board.pid();
        let pidfd = pidfd_open(pid)?;
        if self.board.is_spared() {
            mark_as_victim(pid)?;
        }
        let stamper = Stamper::attach(pid, batch.spec.stamp_source, &batch.watch, &mut armed.degraded)?;
        let refusals =
            self.board.listener().and_then(|listener| Refusals::take(pidfd.as_fd(), listener).ok());
        Ok(Watched {
            pidfd,
            refusals,
            stamper,
            counters: Counters::open(pid, &batch.spec.counters),
            schedstat: File::open(format!("/proc/{pid}/schedstat")).ok(),
            _namespaces: if matches!(batch.spec.isolation, Isolation::Sandbox(_)) {
                ["mnt", "ipc"].map(|name| File::open(format!("/proc/{pid}/ns/{name}")).ok())
            } else {
                [None, None]
            },
            steal_before_ns: self.steal.before(),
            swapped_before: self.swaps.as_ref().and_then(Swaps::pages),
            before: self.groups.sample_before(armed.leaf.as_ref(), armed.idle),
        })
    }
}

/// Makes a child the first victim when memory is short, which a zygote that is spared has not made it.
fn mark_as_victim(pid: i32) -> Result<(), LaunchError> {
    std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000")
        .during("mark the run as the first victim of a lack of memory")
}

fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::StillAlive))
}

fn pidfd_open(pid: i32) -> Result<OwnedFd, LaunchError> {
    // SAFETY: no pointers are passed.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let raw = nix::errno::Errno::result(raw).during("open the run's process descriptor")?;
    let raw = i32::try_from(raw).unwrap_or(-1);
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
