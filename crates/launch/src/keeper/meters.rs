//! What is read of every run beside its own counters and groups.

use std::io;
use std::sync::Arc;

use super::cpu_time::Shortest;
use super::stamps::SharedWatch;
use super::steal::StealMeter;
use super::swaps::Swaps;
use crate::clock;
use crate::perf::{Counter, Event, ExecWatch, Tracepoints};

/// Meters that stay open between the batches.
#[derive(Debug)]
pub(super) struct Meters {
    pub(super) steal: StealMeter,
    pub(super) swaps: Option<Swaps>,
    watch: SharedWatch,
    /// Makes opening the counters of each run cheap; see [`Counter::hold`].
    _held_events: [Counter; 3],
    pub(super) steps: Steps,
    pub(super) tick_ns: u64,
}

/// Steps of the kernel before and after the program of this batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    /// From the call of `execve` to the start.
    pub(super) call: Shortest,
    /// From the end to the word of it.
    pub(super) burial: Shortest,
}

impl Meters {
    pub(super) fn open(tracepoints: Option<Tracepoints>) -> Self {
        Self {
            steal: StealMeter::new(),
            swaps: Swaps::open(),
            watch: open_watch(tracepoints),
            _held_events: [Event::CPU_MIGRATIONS, Event::MINOR_FAULTS, Event::MAJOR_FAULTS]
                .map(Counter::hold),
            steps: Steps::default(),
            tick_ns: clock::tick_ns(),
        }
    }

    /// Turns them to the CPUs of a batch. Answers what stamps its runs there.
    pub(super) fn prepare(&mut self, cpus: &[u32]) -> SharedWatch {
        self.steps = Steps::default();
        let watch = watch_programs(&self.watch, cpus);
        self.steal.watch(cpus.to_vec());
        watch
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
