//! The records of a driver.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::orders::check::Fault;

/// Length of a record in the file.
const RECORD_BYTES: usize = 40;
/// All connections were awaiting an answer when the request was due.
const HELD_BACK: u32 = 1;
const WRONG_STATUS: u32 = 2;
const WRONG_BODY: u32 = 4;

/// One request. Several threads fill it in; none reads what another writes before all have ended.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) intended_ns: u64,
    pub(super) operation: u32,
    sent_ns: AtomicU64,
    received_ns: AtomicU64,
    status: AtomicU32,
    flags: AtomicU32,
}

impl Record {
    pub(super) fn set_sent(&self, sent_ns: u64) {
        self.sent_ns.store(sent_ns, Relaxed);
    }

    pub(super) fn set_held_back(&self) {
        self.flags.fetch_or(HELD_BACK, Relaxed);
    }

    pub(super) fn set_answer(&self, received_ns: u64, status: u16) {
        self.status.store(u32::from(status), Relaxed);
        self.received_ns.store(received_ns, Relaxed);
    }

    pub(super) fn set_fault(&self, fault: Fault) {
        let flag = if fault == Fault::Status { WRONG_STATUS } else { WRONG_BODY };
        self.flags.fetch_or(flag, Relaxed);
    }

    pub(super) fn sent_ns(&self) -> u64 {
        self.sent_ns.load(Relaxed)
    }

    pub(super) fn received_ns(&self) -> u64 {
        self.received_ns.load(Relaxed)
    }

    pub(super) fn is_held_back(&self) -> bool {
        self.flags.load(Relaxed) & HELD_BACK != 0
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        match self.flags.load(Relaxed) {
            flags if flags & WRONG_STATUS != 0 => Some(Fault::Status),
            flags if flags & WRONG_BODY != 0 => Some(Fault::Body),
            _ => None,
        }
    }
}

/// All requests of a load, in order of intended time.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) records: Vec<Record>,
}

impl Table {
    /// Makes a record of every request that is due; their memory is touched by that.
    pub(super) fn new(intended_ns: impl Iterator<Item = u64>, operations: &[u32]) -> Self {
        let record = |(intended_ns, operation): (u64, &u32)| Record {
            intended_ns,
            operation: *operation,
            ..Default::default()
        };
        Self { records: intended_ns.zip(operations).map(record).collect() }
    }

    /// The file: per request, little-endian, three stamps of 64 bits (intended, sent, received [ns]; 0: it
    /// did not happen) and four words of 32 bits (operation, status, flags, zero).
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.records.len() * RECORD_BYTES);
        for record in &self.records {
            for stamp in [record.intended_ns, record.sent_ns(), record.received_ns()] {
                bytes.extend_from_slice(&stamp.to_le_bytes());
            }
            for word in [record.operation, record.status.load(Relaxed), record.flags.load(Relaxed), 0] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_as_the_format_says() {
        let table = Table::new([10, 20].into_iter(), &[1, 3]);
        table.records[1].set_held_back();
        table.records[1].set_sent(21);
        table.records[1].set_answer(22, 404);
        table.records[1].set_fault(Fault::Status);
        let words: Vec<u64> =
            table.bytes().chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [10, 0, 0, 1, 0, 20, 21, 22, 3 + (404 << 32), 3]);
        assert!(table.records[1].is_held_back());
        assert_eq!(table.records[1].fault(), Some(Fault::Status));
        assert_eq!(table.records[0].fault(), None);
    }
}
