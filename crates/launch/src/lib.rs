//! The launcher: executes one run, or a batch of iterations, and measures it.
//!
//! ```text
//! caller ── RunSpec ──▶ keeper            outside of the run's groups: limits, stamps, counters
//!                         ├─ zygote       lives in the version 1 groups; clones bare runs
//!                         ├─ its copy     has moved into the sandbox's pool; clones sandboxed runs
//!                         │    └─ pool    idle first process of the sandbox's namespaces
//!                         └─ run          cloned by a zygote, child of the keeper
//! ```
//!
//! A run is set up completely before its gate opens; its time is that between the kernel's stamps
//! of its beginning and its end. [`Launcher`] is the entrance, [`guard`] keeps the promise that nothing
//! survives even a killed launcher.

mod barrier;
pub mod calibration;
mod clock;
mod control;
mod error;
mod futex;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod guard;
mod keeper;
mod own_metrics;
mod perf;
pub mod sandbox;
mod scheduling;
mod shared_page;
mod zygote;

pub use clock::{monotonic_ns, utc_ns};
pub use control::{Control, NoControl};
pub use error::LaunchError;
pub use keeper::{Launcher, LauncherOptions, Report};
pub use perf::{NoTracepoints, Tracepoints};
