//! The keeper: outside of the run's groups, it prepares, releases, watches, measures and cleans up.
//!
//! | module | step of one iteration |
//! |---|---|
//! | [`arm`] | group, streams, clone, stamps, counters: up to the gate |
//! | [`watch`] | gate to exit: output, cancellation |
//! | [`settle`] | nothing is left, everything is read, groups are gone |
//! | [`record`] | the readings become a [`RunOutcome`] |
//! | [`enforcer`] | meanwhile: ends the run at its limits |
//! | [`cpu_time`] | which CPU time is the program's |
//!
//! [`Launcher`] orders them. What they work on: the [`enclosure`] that runs live in, the [`meters`], the
//! [`batch`], and the run itself, [`armed`] and then as [`evidence`].

mod arm;
mod armed;
mod batch;
mod cpu_time;
mod enclosure;
mod enforcer;
mod evidence;
mod launcher;
mod meters;
mod priority;
mod record;
mod settle;
mod signals;
mod stamps;
pub(crate) mod steal;
mod streams;
mod swaps;
mod timers;
mod verdict;
mod watch;

pub use launcher::{Launcher, LauncherOptions};
pub use record::Report;
