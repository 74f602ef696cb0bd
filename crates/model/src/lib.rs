//! Vocabulary shared by the launcher and everything that reads its records.
//!
//! Data only: no system calls, no clocks, no files. Every structure is one JSON document with a
//! schema name, so that the stages can be written in different languages and replayed alone.
//!
//! | type | direction |
//! |---|---|
//! | [`RunSpec`] | what to execute, into the launcher |
//! | [`RunOutcome`] | what happened, one per iteration, out of the launcher |
//! | [`Request`], [`Reply`] | the line protocol of a resident launcher |

#[cfg(test)]
mod contract;
mod counter;
mod limits;
mod outcome;
mod placement;
mod protocol;
mod quantity;
mod sandbox;
mod spec;
mod status;

pub use counter::{COUNTER_ALIASES, COUNTER_NAMES};
pub use limits::{LimitKind, Limits};
pub use outcome::{CapturedStream, Mechanism, OUTCOME_SCHEMA, OwnMeasurement, Phase, RunOutcome};
pub use placement::{Placement, SchedulingPolicy};
pub use protocol::{Hello, PROTOCOL_VERSION, Reply, Request};
pub use quantity::{Metric, Quantity, Source};
pub use sandbox::{NetworkView, RootView, SandboxSpec};
pub use spec::{BarrierSpec, InputStream, Isolation, OutputStream, RunSpec, SPEC_SCHEMA, SpecError};
pub use status::{Flag, RunStatus};
