//! A service under load, best-effort jobs beside it, and the conductor of a trial of colocation.
//!
//! `steelyard-load --help` shows the command line. The files that a trial leaves are described in
//! `src/steelyard/studies/colocation/trial.py`.
//!
//! # Service
//!
//! One thread reads all connections and fills one queue; whichever worker is free takes the oldest request,
//! stamps, executes a loop of fixed length (never of fixed time), stamps, and answers. `kind` `web` has two
//! processes: for a long request the worker of the front asks the second over HTTP for what the request has
//! beyond a usual one, and waits. Both are parts of the service: they have its class, nice value and group.
//!
//! # Client
//!
//! Send times are drawn from the seed before the first request, and requests are sent when they are due,
//! whatever the answers do; latency counts from the time a request was due, so that nothing is omitted when
//! the service falls behind. The sender sleeps (`clock_nanosleep`, timer slack 1 ns) until 50 us before a
//! request is due and then spins; where it shares its CPUs with the service, it only sleeps. Another thread
//! receives. Records are mapped, of full length and touched beforehand.
//!
//! With `--closed-loop N`, the control, N clients follow the same schedule but wait for each answer before
//! they send again. Latency from the actual send time is what such a tool reports; the difference to the
//! latency from the intended time is what it hides.
//!
//! # A command as the load
//!
//! With `kind` `command` there is neither: a command is launched again and again with the settings of the
//! service, on its CPUs, and its launches, or what it prints of its requests, are the latencies.
//!
//! # Who has which class in a trial
//!
//! | part | CPUs | class, nice value, group |
//! |---|---|---|
//! | service (both tiers) | `cpus` | those of the service in the policy |
//! | client | `client_cpus` | those of the service; in the class `fifo` one priority above, so that the service never delays its own requests |
//! | best-effort jobs | `cpus` | those of the jobs in the policy |
//! | conductor | `client_cpus` | its own; where the service is `fifo`, the class and priority of the client |
//!
//! Groups are made only where the policy sets a weight or `cpu.idle`; otherwise all parts stay in the group
//! of the conductor, where nice values count. In cgroup version 1 a weight w is written as
//! `cpu.shares` = round(1024 w / 100), at least 2, the kernel's own scale. All settings are made from outside
//! while a part still has one thread, and read back. If one of them cannot be made, the trial ends before the
//! load and says so: another policy is never measured in the place of the wanted one.
//!
//! # Ends
//!
//! Parts are killed by the kernel when the conductor dies (`PR_SET_PDEATHSIG`), a scheduler gets SIGTERM then.
//! Groups that such an end leaves are found by their name and removed by the next trial. Requests and
//! iterations are mapped files, samples are appended whole: what was recorded can be read in each case,
//! after a kill with records of zeros at the end of `iterations.bin`.
//!
//! # Example
//!
//! ```
//! use steelyard_load::{Arrivals, Schedule};
//!
//! let schedule = Schedule {
//!     arrivals: Arrivals::Poisson, rate_per_s: 500.0, duration_ns: 1_000_000_000, long_share: 0.02, seed: 7,
//! };
//! assert_eq!(schedule.draw(), schedule.draw());
//! ```

mod address;
mod client;
mod clock;
mod command;
mod control;
mod error;
mod frame;
mod freeze;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod histogram;
mod http;
mod image;
mod iterations;
mod job;
mod launches;
mod options;
mod orders;
mod part;
mod protocol;
mod reader;
mod readiness;
mod record;
mod schedule;
mod service;
mod settings;
mod signal;
mod trial;
mod work;

pub use command::{USAGE, execute};
pub use error::LoadError;
pub use histogram::Histogram;
pub use image::{Image, Scaler, Size};
pub use schedule::{Arrivals, Due, Schedule};
pub use settings::Class;
pub use work::{Calibration, calibrate, measure, work};
