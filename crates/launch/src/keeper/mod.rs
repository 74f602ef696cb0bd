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

mod arm;
mod cpu_time;
mod enforcer;
mod launcher;
mod manners;
mod record;
mod settle;
mod stamps;
pub(crate) mod steal;
mod streams;
mod swaps;
mod timers;
mod tree;
mod verdict;
mod watch;

pub use launcher::{Launcher, LauncherOptions, Report};
