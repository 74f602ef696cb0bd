//! Transports, and the program that stamps every message that two endpoints send each other.
//!
//! `steelyard-comm --help` shows the command line. The trace it leaves is described in
//! `src/steelyard/studies/communication/trace.py`.
//!
//! # What a message is
//!
//! Exactly n bytes, 0 to 4294967295; both endpoints know n from the plan. On a byte stream (`pipe`, `unix`,
//! `tcp`) each message is preceded by a frame of 8 bytes, its number and its size, and both go out in one
//! call; so n bytes cost what n + 8 bytes cost, and 0 bytes are a message. In shared memory the size stands
//! beside the sequence word of a cell, and nothing is added. The receiver compares frame and plan.
//!
//! Both endpoints use one buffer each, as large as the largest message, which was written to before the first
//! stamp. Sockets and pipes have the sizes that the system gives them; the header names them.
//!
//! # What an operation is
//!
//! | operation | `pipe`, `unix`, `tcp` | `shm` |
//! |---|---|---|
//! | `pingpong`, `stream` | `write` until the kernel has taken all; `read` until all is there | copy into cells of the ring; copy out of them |
//! | `send` | endpoint 1 says that it is about to receive, endpoint 0 waits 50 us, then as `stream` | the same |
//! | `recv` | endpoint 1 waits until bytes are there (`poll`), then until `FIONREAD` has not changed for 50 us, then receives | the same with the count of full cells |
//! | `isend` | one call that does not block (`MSG_DONTWAIT`; for a pipe a second, non-blocking description); `mid` is its return; then the rest as `stream` | copy into the cells that are free; `mid`; then the rest |
//! | `test` | one `poll` with no time for "can be written" | one look at the reader's count: is a cell free? |
//! | `iprobe` | one `ioctl(FIONREAD)` | one look at the next sequence word |
//! | `wtime` | one reading of `CLOCK_MONOTONIC` | the same |
//!
//! A message larger than what the transport holds cannot have arrived before its receive begins: then `recv`
//! finds as much as it holds, and the sender's stamps include the receiver's waiting. A blocked endpoint
//! sleeps in the kernel; in shared memory it looks for 200 us and then sleeps (without `--cpus` it also
//! offers its CPU meanwhile, and where both have one CPU it sleeps at once). The interval of `test`,
//! `iprobe` and `wtime` also contains one stamp, whose cost stands in the header.
//!
//! # Blocks
//!
//! Before the first operation, after each `--block` operations and at the end, endpoint 0 says whether to go on,
//! both time the cache line (`--canary`: the median of 11 batches of 100 round trips, kept by endpoint 0),
//! probe the clocks (500 times at either end of the run) and keep their CPU and run delay.
//!
//! # Planted costs
//!
//! So that a study can show that it finds what is there, `--plant-switch BYTES:EXTRA_NS` makes each message of
//! more than so many bytes cost so much more, at whichever endpoint sends it, and `--plant-noise LAW` makes
//! endpoint 0 wait before it sends, for a time that is drawn once per operation; half a round trip gets half of
//! it. Both are busy waiting inside the stamped interval, off by default, and stand in the header. Laws:
//! log-normal (`scale * exp(sigma * Z)`), Pareto (`scale * U^(-1/alpha)`), Weibull
//! (`scale * (-ln U)^(1/shape)`); a single draw is cut at 100 ms.
//!
//! # Ends
//!
//! Records are mapped, of full length and touched before the first stamp, so that whatever was finished is in the
//! files even after `kill -9`; a header says `"ended_by": null` then. On a disk the kernel may write pages
//! back during a long run, and the next record on such a page costs a page fault; a folder in memory has
//! none. Endpoints on one host end together: by the closed connection, in shared memory by a socket that
//! nobody writes to. Between two hosts a silent peer is lost after 11 to 15 s if the host is gone, and after
//! 120 s if it is there. Nothing has a name that could be left over but the files of the trace.
//!
//! # Example
//!
//! ```
//! use steelyard_comm::{Operation, Plan};
//!
//! let plan = Plan::parse("op,size\npingpong,64\nwtime,0\n").unwrap();
//! assert_eq!(plan.steps()[0].operation, Operation::PingPong);
//! assert_eq!(plan.largest(), 64);
//! ```

mod canary;
mod channel;
mod clock;
mod command;
mod endpoint;
mod error;
mod header;
mod launch;
mod message;
mod options;
mod overhead;
mod placement;
mod plan;
mod plant;
mod record;
mod setup;
mod signal;

pub use canary::measure_canary;
pub use clock::{StampCost, measure_stamps};
pub use command::{USAGE, execute};
pub use error::CommError;
pub use message::{FRAME_BYTES, LARGEST_BYTES};
pub use options::Transport;
pub use plan::{Operation, Plan, Step};
pub use plant::Law;

/// Whether somebody else tells the user: the endpoint that started this one.
#[must_use]
pub fn is_silent(error: &CommError) -> bool {
    matches!(error, CommError::Told { .. })
}
