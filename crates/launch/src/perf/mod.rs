//! Perf events: kernel stamps of exec and exit, and counters of the process tree.

mod counter;
mod event;
mod names;
mod ring;

pub(crate) use counter::{Counter, Scope};
pub(crate) use names::{Event, event_names, find_event};
pub(crate) use ring::{ExecRing, Stamps};
