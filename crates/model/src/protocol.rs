use serde::{Deserialize, Serialize};

use crate::{RunOutcome, RunSpec};

/// Version of the line protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// One line into a resident launcher.
///
/// `prepare` is answered by `ready`; `go` starts the prepared batch, which answers one `outcome`
/// per iteration and then `done`. `cancel` ends the batch in flight: its run is reported as
/// `interrupted`. End of input is `quit`, and also ends what is running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
#[non_exhaustive]
pub enum Request {
    /// Make everything ready for the batch up to its gate.
    Prepare {
        /// What to execute.
        spec: Box<RunSpec>,
    },
    /// Open the gate.
    Go,
    /// End the batch in flight.
    Cancel,
    /// Answer [`Reply::Pong`] with both clocks.
    Ping,
    /// Leave.
    Quit,
}

/// One line out of a resident launcher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
#[non_exhaustive]
pub enum Reply {
    /// First line.
    Hello(Hello),
    /// The batch waits at its gate.
    Ready {
        /// [`RunSpec::id`].
        id: String,
    },
    /// One iteration.
    Outcome {
        /// Its record.
        outcome: Box<RunOutcome>,
    },
    /// The batch is over.
    Done {
        /// [`RunSpec::id`].
        id: String,
        /// Outcomes sent.
        iterations: u32,
    },
    /// Clocks.
    Pong {
        /// `CLOCK_MONOTONIC` [ns].
        monotonic_ns: u64,
        /// UTC [ns since 1970].
        utc_ns: u64,
    },
    /// A request could not be served; the launcher lives on.
    Error {
        /// Stable code: `bad_request`, `capability`, `launcher`.
        code: String,
        /// What happened, which input, what to do.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Version of the launcher.
    pub version: String,
    /// Process id, in the launcher's own namespace.
    pub process_id: u32,
    /// `v2`, `hybrid`, `v1` or `none`.
    pub cgroup: String,
    /// Kernel release.
    pub kernel: String,
}
