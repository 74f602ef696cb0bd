//! A run that exists: what is known of it, and what is attached to it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::unistd::Pid;
use steelyard_host::cgroup::{IdleMemory, Leaf, Sample};

use super::enforcer::Enforced;
use super::stamps::Stamper;
use super::streams::Streams;
use super::verdict::Cause;
use crate::perf::{Counter, Event, find_event};
use crate::sandbox::Refusals;

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
    pub(super) idle: Option<IdleMemory>,
    pub(super) streams: Streams,
    pub(super) attached: Option<Attached>,
    pub(super) cause: Option<Cause>,
    /// How the enforcer has ended it, which its groups are marked by.
    pub(super) enforced: Option<Enforced>,
    pub(super) is_stopped: bool,
    pub(super) has_records_ended: bool,
    /// Why the program did not start.
    pub(super) failure: Option<String>,
    pub(super) degraded: Vec<String>,
}

/// What is attached to a child that is ready.
#[derive(Debug)]
pub(super) struct Attached {
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
    pub(super) fn open(pid: i32, names: &[String]) -> Self {
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
