//! The files of a trial (`src/steelyard/studies/colocation/trial.py`): mapped, of full length, touched beforehand.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use steelyard_memory::Mapping;

use crate::LoadError;

/// One request. Sender and receiver are different threads: fields that change are atomic.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct RequestRecord {
    seq: u32,
    kind: u32,
    intended_ns: u64,
    sent_ns: AtomicU64,
    started_ns: AtomicU64,
    finished_ns: AtomicU64,
    received_ns: AtomicU64,
}

/// One finished iteration of a best-effort job.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct IterationRecord {
    pub(crate) job: u32,
    pub(crate) thread: u32,
    pub(crate) end_ns: u64,
}

/// What service and jobs have used so far.
#[expect(clippy::struct_field_names, reason = "all are times [ns]")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct SampleRecord {
    pub(crate) time_ns: u64,
    pub(crate) service_cpu_ns: u64,
    pub(crate) service_wait_ns: u64,
    pub(crate) best_effort_cpu_ns: u64,
    pub(crate) best_effort_wait_ns: u64,
    pub(crate) busy_ns: u64,
}

const _: () = assert!(size_of::<RequestRecord>() == 48);
const _: () = assert!(size_of::<IterationRecord>() == 16);
const _: () = assert!(size_of::<SampleRecord>() == 48);
const _: () = assert!(cfg!(target_endian = "little"), "the files of a trial are little-endian");

impl SampleRecord {
    /// As in the file.
    pub(crate) fn bytes(&self) -> [u8; 48] {
        let fields = [
            self.time_ns,
            self.service_cpu_ns,
            self.service_wait_ns,
            self.best_effort_cpu_ns,
            self.best_effort_wait_ns,
            self.busy_ns,
        ];
        let mut bytes = [0; 48];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }
}

/// When a request was handled.
#[expect(clippy::struct_field_names, reason = "all are stamps [ns]")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handled {
    pub(crate) started_ns: u64,
    pub(crate) finished_ns: u64,
    pub(crate) received_ns: u64,
}

/// The requests of a trial, in a file or in memory.
#[derive(Debug)]
pub(crate) struct RequestTable {
    memory: Mapping,
    length: usize,
}

impl RequestTable {
    /// Makes the table; every page of it is there before the first request is due.
    pub(crate) fn create(path: Option<&Path>, length: usize) -> Result<Self, LoadError> {
        let bytes = length * size_of::<RequestRecord>();
        let mut memory = match path {
            Some(path) => Mapping::of_file(&create_file(path, bytes)?, bytes)?,
            None => Mapping::anonymous(bytes)?,
        };
        if length > 0 {
            memory.touch();
        }
        Ok(Self { memory, length })
    }

    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    fn records(&self) -> &[RequestRecord] {
        let start = self.memory.records::<RequestRecord>();
        // SAFETY: so many records fit, aligned at the begin of a page; all bit patterns are valid, what
        // changes while this lives is atomic, and `plan` has the table for itself.
        unsafe { std::slice::from_raw_parts(start, self.length) }
    }

    /// Writes when a request is to be sent; before anybody else looks at the table.
    pub(crate) fn plan(&mut self, index: usize, is_long: bool, intended_ns: u64) {
        assert!(index < self.length, "a request beyond the table");
        // SAFETY: the index is below the length.
        let place = unsafe { self.memory.records::<RequestRecord>().add(index) };
        let seq = u32::try_from(index).unwrap_or(u32::MAX);
        let record = RequestRecord { seq, kind: u32::from(is_long), intended_ns, ..Default::default() };
        // SAFETY: valid and aligned; `&mut self` has the table for itself.
        unsafe { place.write(record) };
    }

    pub(crate) fn intended_ns(&self, index: usize) -> u64 {
        self.records()[index].intended_ns
    }

    pub(crate) fn is_long(&self, index: usize) -> bool {
        self.records()[index].kind != 0
    }

    /// Keeps when a request was sent.
    #[inline]
    pub(crate) fn set_sent(&self, index: usize, sent_ns: u64) {
        self.records()[index].sent_ns.store(sent_ns, std::sync::atomic::Ordering::Relaxed);
    }

    /// Keeps an answer. Gives whether it is the first one for this request.
    #[inline]
    pub(crate) fn set_handled(&self, index: usize, handled: Handled) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        let Some(record) = self.records().get(index) else { return false };
        if record.received_ns.load(Relaxed) != 0 {
            return false;
        }
        record.started_ns.store(handled.started_ns, Relaxed);
        record.finished_ns.store(handled.finished_ns, Relaxed);
        // ORDERING: Release: pairs with whoever reads the file after this process was killed. A record
        // with an answer has all its other fields.
        record.received_ns.store(handled.received_ns, Release);
        true
    }

    /// Time between two stamps of every request that has both [ns], for the summary.
    pub(crate) fn times_ns(&self, from: Stamp, to: Stamp) -> Vec<u64> {
        let time = |record: &RequestRecord| {
            let (from, to) = (record.stamp(from), record.stamp(to));
            (from > 0 && to > 0).then(|| to.saturating_sub(from))
        };
        self.records().iter().filter_map(time).collect()
    }
}

/// A stamp of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    Intended,
    Sent,
    Received,
}

impl RequestRecord {
    fn stamp(&self, stamp: Stamp) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        match stamp {
            Stamp::Intended => self.intended_ns,
            Stamp::Sent => self.sent_ns.load(Relaxed),
            Stamp::Received => self.received_ns.load(Relaxed),
        }
    }
}

/// Creates a file with all its blocks, and refuses to touch one that is there.
pub(crate) fn create_file(path: &Path, bytes: usize) -> Result<File, LoadError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.map_err(|error| file_error(path, &error))?;
    extend(&file, 0, bytes).map_err(|error| file_error(path, &error))?;
    Ok(file)
}

/// Makes sure that a file has these bytes; a file never gets shorter by that.
pub(crate) fn extend(file: &File, offset: usize, bytes: usize) -> io::Result<()> {
    let range = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    if bytes == 0 {
        return Ok(());
    }
    loop {
        // A signal may interrupt the reservation of a large file; it is repeated.
        match posix_fallocate(file, range(offset), range(bytes)) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) if !crate::signal::is_asked_to_end() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Why a file cannot be written.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> LoadError {
    let path = path.display();
    LoadError::usage(match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("`{path}` exists; records are never overwritten: choose another folder for `--out`")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("no room for `{path}`: {error}; free space or choose another folder for `--out`")
        }
        _ => format!("`{path}` cannot be written: {error}; choose a folder for `--out` that can be written"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_kept_as_the_format_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.bin");
        let mut table = RequestTable::create(Some(&path), 2).unwrap();
        table.plan(0, false, 10);
        table.plan(1, true, 20);
        table.set_sent(1, 21);
        let handled = Handled { started_ns: 22, finished_ns: 23, received_ns: 24 };
        assert!(table.set_handled(1, handled));
        assert!(!table.set_handled(1, handled), "a second answer is told");
        assert!(!table.set_handled(2, handled), "an answer to nothing is told");
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 96);
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [0, 10, 0, 0, 0, 0, 1 + (1 << 32), 20, 21, 22, 23, 24]);
        assert_eq!(table.times_ns(Stamp::Intended, Stamp::Received), [4]);
        assert_eq!(table.times_ns(Stamp::Sent, Stamp::Received), [3]);
    }

    #[test]
    fn records_are_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.bin");
        drop(RequestTable::create(Some(&path), 1).unwrap());
        let error = RequestTable::create(Some(&path), 1).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("never overwritten"), "{error}");
    }

    #[test]
    fn an_empty_schedule_has_an_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.bin");
        assert_eq!(RequestTable::create(Some(&path), 0).unwrap().len(), 0);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_sample_is_kept_in_the_order_of_its_fields() {
        let sample = SampleRecord {
            time_ns: 1,
            service_cpu_ns: 2,
            service_wait_ns: 3,
            best_effort_cpu_ns: 4,
            best_effort_wait_ns: 5,
            busy_ns: 6,
        };
        let bytes = sample.bytes();
        assert!((0..6).all(|field| usize::from(bytes[field * 8]) == field + 1));
    }
}
