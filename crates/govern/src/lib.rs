//! Best-effort commands on a host without a scheduling class of its own, and with one.
//!
//! | module | concept |
//! |---|---|
//! | [`Home`] | the groups `steelyard-background` in which best-effort commands live |
//! | [`Law`] | when they are throttled, parked and released: a pure function of what is observed |
//! | [`Throttle`] | how: quota and freezer of both versions of control groups, with what was there before |
//! | [`Watch`] | what is observed: pressure of the service's group, or the waiting time of its threads |
//! | [`Journal`] | what was there before, on disk, for after a kill |
//!
//! The program `steelyard-govern` has a verb for each use: `background -- COMMAND` executes a command
//! best-effort, `start`, `stop` and `status` are about the governor, `restore` undoes what a killed
//! governor left.

mod background;
mod class;
mod command;
mod daemon;
mod error;
mod governor;
mod home;
mod instance;
mod journal;
mod law;
mod options;
mod process;
mod status;
mod text_file;
mod throttle;
mod watch;

pub use class::{ClassState, read_class};
pub use command::execute;
pub use error::GovernError;
pub use home::{CpuHome, Home, Version};
pub use journal::Journal;
pub use law::{Allowance, Decision, Law, Observation, Settings};
pub use throttle::Throttle;
pub use watch::Watch;
