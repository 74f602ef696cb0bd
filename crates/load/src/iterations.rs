//! `iterations.bin`: one record per finished iteration, from all threads of all jobs.
//!
//! A record's place is drawn from a counter that all jobs share. The file is mapped in chunks that are there
//! before they are written; what is beyond the counter is cut off at the end.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nix::sys::memfd::{MFdFlags, memfd_create};
use steelyard_memory::Mapping;

use crate::LoadError;
use crate::record::{IterationRecord, extend, file_error};

const RECORD_BYTES: usize = size_of::<IterationRecord>();
/// 4096 records; a multiple of every size of a page on Linux (4 to 64 KiB).
const CHUNK_BYTES: usize = 1 << 16;
const CHUNK_RECORDS: u64 = (CHUNK_BYTES / RECORD_BYTES) as u64;

/// The number of records, in memory that child processes inherit.
#[derive(Debug)]
pub(crate) struct Counter {
    descriptor: OwnedFd,
    memory: Mapping,
}

impl Counter {
    /// A new counter at 0.
    pub(crate) fn create() -> Result<Self, LoadError> {
        // Without `MFD_CLOEXEC`: children are to have it.
        let descriptor = memfd_create(c"steelyard-iterations", MFdFlags::empty())
            .map_err(|error| LoadError::system("making shared memory", error))?;
        nix::unistd::ftruncate(&descriptor, 8)
            .map_err(|error| LoadError::system("making shared memory", error))?;
        Self::map(descriptor)
    }

    /// The counter that a conductor hands down.
    pub(crate) fn inherit(descriptor: i32) -> Result<Self, LoadError> {
        // SAFETY: the conductor has opened this descriptor for this process, and nobody else here uses it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Self::map(descriptor)
    }

    fn map(descriptor: OwnedFd) -> Result<Self, LoadError> {
        let memory = Mapping::of_part(&descriptor, 0, 8)?;
        Ok(Self { descriptor, memory })
    }

    /// The descriptor's number, the same in children.
    pub(crate) fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    fn value(&self) -> &AtomicU64 {
        // SAFETY: 8 bytes are mapped, aligned at the begin of a page, and all access is atomic.
        unsafe { &*self.memory.records::<AtomicU64>() }
    }

    /// Counts one more.
    pub(crate) fn increase(&self) {
        self.value().fetch_add(1, Relaxed);
    }

    /// How many iterations have ended so far.
    pub(crate) fn count(&self) -> u64 {
        self.value().load(Relaxed)
    }
}

/// The file and its counter.
#[derive(Debug)]
pub(crate) struct IterationLog {
    file: File,
    pub(crate) counter: Counter,
}

impl IterationLog {
    pub(crate) fn new(file: File, counter: Counter) -> Self {
        Self { file, counter }
    }

    pub(crate) fn open(path: &Path, counter: Counter) -> Result<Self, LoadError> {
        let file =
            File::options().read(true).write(true).open(path).map_err(|error| file_error(path, &error))?;
        Ok(Self { file, counter })
    }

    /// A writer for one thread.
    pub(crate) const fn writer(&self) -> Writer<'_> {
        Writer { log: self, chunk: None }
    }

    /// Cuts off what was not written, also within: a job that was killed may have left a gap.
    pub(crate) fn finish(&self) -> Result<(), LoadError> {
        let failed = |error: std::io::Error| LoadError::system("completing `iterations.bin`", error);
        let length = self.file.metadata().map_err(failed)?.len();
        let wanted = (self.counter.count() * RECORD_BYTES as u64).min(length);
        self.file.set_len(wanted).map_err(failed)?;
        let memory = Mapping::of_file(&self.file, usize::try_from(wanted).unwrap_or(usize::MAX))?;
        let count = usize::try_from(wanted).unwrap_or(0) / RECORD_BYTES;
        let mut kept = 0;
        for index in 0..count {
            // SAFETY: the index is below the number of records that are mapped.
            let from = unsafe { memory.records::<IterationRecord>().add(index) };
            // SAFETY: mapped and aligned, all bit patterns are valid, and the jobs have ended.
            let record = unsafe { from.read() };
            if record.end_ns == 0 {
                continue;
            }
            // SAFETY: at most as far as the record that was just read.
            let to = unsafe { memory.records::<IterationRecord>().add(kept) };
            // SAFETY: mapped, aligned, and nobody else has this mapping.
            unsafe { to.write(record) };
            kept += 1;
        }
        self.file.set_len((kept * RECORD_BYTES) as u64).map_err(failed)
    }
}

/// Writes records of one thread.
#[derive(Debug)]
pub(crate) struct Writer<'log> {
    log: &'log IterationLog,
    chunk: Option<(u64, Mapping)>,
}

impl Writer<'_> {
    /// Keeps a record.
    pub(crate) fn add(&mut self, record: IterationRecord) -> Result<(), LoadError> {
        let place = self.log.counter.value().fetch_add(1, Relaxed);
        let number = place / CHUNK_RECORDS;
        if self.chunk.as_ref().is_none_or(|(known, _)| *known != number) {
            let offset = usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(CHUNK_BYTES);
            extend(&self.log.file, offset, CHUNK_BYTES)
                .map_err(|error| LoadError::system("extending `iterations.bin`", error))?;
            let memory = Mapping::of_part(&self.log.file, offset, CHUNK_BYTES)?;
            self.chunk = Some((number, memory));
        }
        if let Some((_, memory)) = &self.chunk {
            let within = usize::try_from(place % CHUNK_RECORDS).unwrap_or(0);
            // SAFETY: below the number of records of a chunk.
            let target = unsafe { memory.records::<IterationRecord>().add(within) };
            // SAFETY: mapped and aligned; the counter has given this place to nobody else.
            unsafe { target.write(record) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::create_file;

    fn read(path: &Path) -> Vec<[u8; 16]> {
        let bytes = std::fs::read(path).unwrap();
        bytes.chunks_exact(RECORD_BYTES).map(|record| record.try_into().unwrap()).collect()
    }

    #[test]
    fn records_of_many_threads_are_all_kept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("iterations.bin");
        let log = IterationLog::new(create_file(&path, 0).unwrap(), Counter::create().unwrap());
        let each = 3000_u64;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    let mut writer = log.writer();
                    for end_ns in 1..=each {
                        writer.add(IterationRecord { job: 1, thread, end_ns }).unwrap();
                    }
                });
            }
        });
        log.finish().unwrap();
        let mut records = read(&path);
        assert_eq!(records.len(), 12_000);
        records.sort_unstable();
        records.dedup();
        assert_eq!(records.len(), 12_000);
    }

    #[test]
    fn a_gap_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("iterations.bin");
        let log = IterationLog::new(create_file(&path, 0).unwrap(), Counter::create().unwrap());
        let mut writer = log.writer();
        for end_ns in [5, 0, 7] {
            writer.add(IterationRecord { job: 0, thread: 0, end_ns }).unwrap();
        }
        log.finish().unwrap();
        let stamps: Vec<u8> = read(&path).iter().map(|record| record[8]).collect();
        assert_eq!(stamps, [5, 7]);
    }

    #[test]
    fn jobs_share_a_counter_by_its_descriptor() {
        let counter = Counter::create().unwrap();
        let copy = nix::unistd::dup(&counter.descriptor).unwrap();
        let other = Counter::inherit(std::os::fd::IntoRawFd::into_raw_fd(copy)).unwrap();
        counter.value().fetch_add(3, Relaxed);
        assert_eq!(other.count(), 3);
    }
}
