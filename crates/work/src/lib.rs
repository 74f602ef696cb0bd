//! Programs with a known answer and known behaviour, for others to measure.
//!
//! | part | what it gives |
//! |---|---|
//! | [`Kernel`] | six compute kernels over generated input, each result checked |
//! | [`Sections`] | repeated, self-timed execution of a kernel |
//! | [`Report`] | the program's own measurements on `STEELYARD_METRICS_FD` |
//! | [`calibrate`] | the size at which an iteration takes a given time on this host |
//! | [`stress`] | load beside a measured worker |
//! | [`touch`], [`spin`] | a known amount of memory, a known amount of CPU time |
//!
//! The same kernels exist in C, Python and Java under `workloads/`; same seed, same checksum.

mod calibrate;
mod checksum;
mod clock;
mod command;
mod error;
mod input;
mod kernel;
mod memory;
mod options;
mod report;
mod section;
mod stop;
mod stress;

pub use calibrate::{Calibration, calibrate};
pub use checksum::Checksum;
pub use clock::{Stopwatch, Times};
pub use command::{USAGE, execute};
pub use error::WorkError;
pub use input::{Stream, draw_below_power_of_two, draw_words};
pub use kernel::{Job, Kernel, Scale};
pub use memory::touch;
pub use options::Options;
pub use report::{Position, Report};
pub use section::{Sections, spin};
pub use stress::{StressKind, stress};
