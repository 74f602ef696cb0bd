//! What the threads of a client count together.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::frame::Answer;
use crate::record::{Handled, RequestTable};

/// What the parts of a client count beside the records.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers with another result than the first of their kind.
    pub(crate) wrong_results: AtomicU64,
    /// Answers to requests that were not awaited.
    pub(crate) unexpected: AtomicU64,
    /// Requests that the socket did not take at once.
    pub(crate) held_back: AtomicU64,
    /// Connections at the end.
    pub(crate) connections: AtomicU64,
    /// Requests that were answered.
    pub(crate) answered: AtomicU64,
    /// First result of each kind, plus one; 0: none yet.
    results: [AtomicU64; 2],
}

impl Tally {
    /// Keeps an answer.
    pub(super) fn keep(&self, table: &RequestTable, answer: &Answer, received_ns: u64) {
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

    pub(super) fn is_all_answered(&self, wanted: usize) -> bool {
        self.answered.load(Relaxed) >= wanted as u64
    }
}
