//! Perf events: kernel stamps of exec and exit, and counters of the process tree.

mod counter;
mod event;
mod names;
mod pages;
mod ring;
mod stamps;
mod tracepoint;
mod watch;

pub(crate) use counter::{Counter, Scope};
pub(crate) use names::{Event, event_names, find_event};
pub(crate) use ring::ExecRing;
pub(crate) use stamps::Stamps;
pub use tracepoint::{NoTracepoints, Tracepoints};
pub(crate) use watch::ExecWatch;
