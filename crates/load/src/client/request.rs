//! What a client is asked for.

use std::path::PathBuf;

use crate::address::Address;
use crate::protocol::Protocol;
use crate::schedule::Schedule;

/// Requests, how they are sent and when.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: Address,
    pub(crate) protocol: Protocol,
    pub(crate) schedule: Schedule,
    pub(crate) connections: u32,
    /// Number of clients that each wait for their answer; 0: open loop.
    pub(crate) closed_loop: u32,
    /// How long answers are awaited after the last request was due [ns].
    pub(crate) drain_ns: u64,
    /// How long before its time the sender wakes up to spin [ns].
    pub(crate) spin_ns: u64,
    /// Where the records go; none: memory.
    pub(crate) requests_path: Option<PathBuf>,
}
