//! A discrete-event simulator of schedulers on many CPUs.
//!
//! A service with a pool of workers answers requests that arrive whether or not it is ready; best-effort jobs want
//! the same CPUs. Each [`Policy`] decides who executes where: control-group weights, `SCHED_IDLE`, `SCHED_FIFO`, nice
//! values as Linux 6.14 does it, and the best-effort class with its local, entry and exit [`Checks`].
//!
//! The same [`Config`] gives the same bits on every machine: time is whole nanoseconds, random numbers come from one
//! seed, elementary functions from `libm`. Constants of Linux stand in [`constant`], each with its place.
//!
//! What is not modelled: caches beyond a fixed price of migration, hyper-threads, frequency, the network, interrupts, memory bandwidth.

mod balance;
mod class;
mod config;
pub mod constant;
mod cpu_set;
mod crowd;
mod fair;
mod machine;
mod pick;
mod placement;
mod pool;
mod random;
mod record;
mod simulation;
mod state;
mod ticks;
mod timeline;

pub use config::{BestEffort, Checks, Config, ConfigError, Costs, Phases, Policy, Service, WorkLaw};
pub use record::{Conservation, Counters, Iteration, Request, Sample, Strictness};
pub use simulation::Simulation;
