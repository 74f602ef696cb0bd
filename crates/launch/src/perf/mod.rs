//! Perf events: kernel stamps of exec and exit, and counters of the process tree.

mod counter;
mod names;
mod ring;
mod stamps;
mod tracepoint;
mod watch;

/// Pages of data of a ring: a process begins and ends rarely.
const DATA_PAGES: usize = 2;
/// When a ring wakes its reader.
const HALF_FULL_BYTES: u32 = 4096;

pub(crate) use counter::{Counter, Scope};
pub(crate) use names::{Event, event_names, find_event};
pub(crate) use ring::ExecRing;
pub(crate) use stamps::Stamps;
pub use tracepoint::{NoTracepoints, Tracepoints};
pub(crate) use watch::ExecWatch;
