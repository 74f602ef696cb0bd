//! The client: requests that are sent when they are due, whatever the answers do.

mod caller;
mod closed;
mod open;
mod pool;
mod summary;

use std::path::PathBuf;

use serde_json::Value;

use crate::LoadError;
use crate::address::{Address, Connection};
use crate::frame::{Answer, Malformed};
use crate::protocol::Protocol;
use crate::record::{Handled, RequestTable};
use crate::schedule::Schedule;

pub(crate) use caller::Caller;
pub(crate) use summary::table_text;

/// What a client is asked for.
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

/// What the parts of a client count beside the records.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers with another result than the first of their kind.
    pub(crate) wrong_results: std::sync::atomic::AtomicU64,
    /// Answers to requests that were not awaited.
    pub(crate) unexpected: std::sync::atomic::AtomicU64,
    /// Requests that the socket did not take at once.
    pub(crate) held_back: std::sync::atomic::AtomicU64,
    /// Connections at the end.
    pub(crate) connections: std::sync::atomic::AtomicU64,
    /// Requests that were answered.
    pub(crate) answered: std::sync::atomic::AtomicU64,
    /// First result of each kind, plus one; 0: none yet.
    results: [std::sync::atomic::AtomicU64; 2],
}

use std::sync::atomic::Ordering::Relaxed;

impl Tally {
    /// Keeps an answer.
    fn keep(&self, table: &RequestTable, answer: &Answer, received_ns: u64) {
        let Answer { seq, is_long, started_ns, finished_ns, result } = *answer;
        let first = &self.results[usize::from(is_long)];
        let mark = result.wrapping_add(1).max(1);
        match first.compare_exchange(0, mark, Relaxed, Relaxed) {
            Err(known) if known != mark => {
                self.wrong_results.fetch_add(1, Relaxed);
            }
            _ => {}
        }
        let handled = Handled { started_ns, finished_ns, received_ns };
        if table.set_handled(seq as usize, handled) {
            self.answered.fetch_add(1, Relaxed);
        } else {
            self.unexpected.fetch_add(1, Relaxed);
        }
    }

    fn is_all_answered(&self, wanted: usize) -> bool {
        self.answered.load(Relaxed) >= wanted as u64
    }
}

/// SOURCE: own choice; more records than that fill 2.4 GB.
pub(crate) const MOST_REQUESTS: f64 = 50e6;

impl Client {
    /// Connects, makes the records, and sends from `begin` on; `begin` is told how many requests there are
    /// and gives the stamp from which offsets count.
    pub(crate) fn execute(
        &self,
        begin: impl FnOnce(usize) -> Result<u64, LoadError>,
    ) -> Result<Value, LoadError> {
        let due = self.schedule.draw();
        let mut table = RequestTable::create(self.requests_path.as_deref(), due.len())?;
        let count = if self.closed_loop > 0 { self.closed_loop } else { self.connections };
        let connections: Result<Vec<Connection>, _> = (0..count).map(|_| self.address.connect()).collect();
        let connections = connections?;
        let start_ns = begin(due.len())?;
        for (index, due) in due.iter().enumerate() {
            table.plan(index, due.is_long, start_ns + due.offset_ns);
        }
        drop(due);
        let tally = Tally::default();
        let end_ns = start_ns + self.schedule.duration_ns;
        if self.closed_loop > 0 {
            closed::execute(self, &table, &tally, &connections, end_ns)?;
        } else {
            open::execute(self, &table, &tally, connections, end_ns)?;
        }
        let client_end_ns = crate::clock::now_ns();
        Ok(summary::summarise(self, &table, &tally, start_ns, client_end_ns))
    }
}

/// Bytes of a connection that are no whole answer yet.
#[derive(Debug, Default)]
struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Takes every whole answer out.
    fn take(
        &mut self,
        protocol: Protocol,
        received: &[u8],
        mut keep: impl FnMut(&Answer),
    ) -> Result<(), Malformed> {
        self.bytes.extend_from_slice(received);
        let mut used = 0;
        while let Some((answer, length)) = protocol.parse_answer(&self.bytes[used..])? {
            used += length;
            keep(&answer);
        }
        self.bytes.drain(..used);
        Ok(())
    }
}

fn lost(reason: &str) -> LoadError {
    LoadError::Failed(format!("the service was lost: {reason}"))
}
