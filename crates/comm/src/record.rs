//! The files of a trace (`src/steelyard/studies/communication/trace.py`): mapped, of full length, touched beforehand.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Release};

use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use steelyard_memory::Mapping;

use crate::CommError;
use crate::plan::Step;

/// One operation. All fields are in the order of the machine, and Linux on big-endian machines is refused
/// by the assertion below.
#[derive(Debug)]
#[repr(C)]
struct OperationRecord {
    seq: u32,
    op: u32,
    size: u64,
    start_ns: u64,
    mid_ns: u64,
    end_ns: AtomicU64,
}

/// State of the endpoint between two blocks.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BlockRecord {
    pub(crate) seq: u32,
    pub(crate) cpu: u32,
    pub(crate) time_ns: u64,
    pub(crate) run_delay_ns: u64,
    pub(crate) canary_ns: f64,
}

/// One clock probe.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ProbeRecord {
    pub(crate) seq: u32,
    pub(crate) unused: u32,
    pub(crate) send0_ns: u64,
    pub(crate) time1_ns: u64,
    pub(crate) recv0_ns: u64,
}

const _: () = assert!(size_of::<OperationRecord>() == 40);
const _: () = assert!(size_of::<BlockRecord>() == 32);
const _: () = assert!(size_of::<ProbeRecord>() == 32);
const _: () = assert!(cfg!(target_endian = "little"), "traces are little-endian");

/// Records in a file, zero until they are written.
#[derive(Debug)]
struct Table<T> {
    memory: Mapping,
    length: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T> Table<T> {
    fn create(path: &Path, length: usize) -> Result<Self, CommError> {
        let bytes = length * size_of::<T>();
        let file = create_file(path, bytes)?;
        let mut memory = Mapping::of_file(&file, bytes)?;
        memory.touch();
        Ok(Self { memory, length, kind: std::marker::PhantomData })
    }

    /// Address of a record; null beyond the end.
    #[inline]
    const fn place(&self, index: usize) -> *mut T {
        if index >= self.length {
            return std::ptr::null_mut();
        }
        // SAFETY: the index is below the length, and the memory begins on a page, aligned for every record.
        unsafe { self.memory.start().cast::<T>().add(index) }
    }

    #[inline]
    fn set(&self, index: usize, record: T) {
        let place = self.place(index);
        if !place.is_null() {
            // SAFETY: valid and aligned; this process alone writes the file, from one thread.
            unsafe { place.write(record) };
        }
    }
}

/// Creates a file with all its blocks, and refuses to touch one that is there.
fn create_file(path: &Path, bytes: usize) -> Result<File, CommError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| file_error(path, &error))?;
    let length = i64::try_from(bytes).unwrap_or(i64::MAX);
    // A signal may interrupt the reservation of a large file; it is repeated.
    loop {
        match posix_fallocate(&file, 0, length) {
            Ok(()) => return Ok(file),
            Err(Errno::EINTR) => crate::signal::check()?,
            Err(error) => return Err(file_error(path, &error.into())),
        }
    }
}

/// Why a file of a trace cannot be written.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> CommError {
    let path = path.display();
    CommError::Unusable(match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("`{path}` exists; a trace is never overwritten: choose another folder for `--out`")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("no room for `{path}`: {error}; free space or choose another folder for `--out`")
        }
        _ => format!("`{path}` cannot be written: {error}; choose a folder for `--out` that can be written"),
    })
}

/// What one endpoint writes while it measures.
#[derive(Debug)]
pub(crate) struct Records {
    operations: Table<OperationRecord>,
    blocks: Table<BlockRecord>,
    probes: Option<Table<ProbeRecord>>,
    blocks_written: usize,
    probes_written: usize,
    /// Files that this value has made.
    made: Vec<PathBuf>,
}

/// Removes files as far as that is possible; they hold nothing yet.
fn remove(paths: &[PathBuf]) {
    for path in paths {
        let _ = fs::remove_file(path);
    }
}

/// How many records there can be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) operations: usize,
    pub(crate) blocks: usize,
    pub(crate) probes: usize,
}

impl Records {
    /// Makes the files of one endpoint; the probes are endpoint 0's. None is left if one cannot be made.
    pub(crate) fn create(folder: &Path, rank: u32, extent: Extent) -> Result<Self, CommError> {
        let mut made = Vec::new();
        let created = Self::create_each(folder, rank, extent, &mut made);
        if created.is_err() {
            remove(&made);
        }
        created
    }

    fn create_each(
        folder: &Path,
        rank: u32,
        extent: Extent,
        made: &mut Vec<PathBuf>,
    ) -> Result<Self, CommError> {
        let mut next = |name: String| {
            let path = folder.join(name);
            if !path.exists() {
                made.push(path.clone());
            }
            path
        };
        let operations = Table::create(&next(format!("operations.{rank}.bin")), extent.operations)?;
        let blocks = Table::create(&next(format!("blocks.{rank}.bin")), extent.blocks)?;
        let probes = match rank {
            0 => Some(Table::create(&next("probes.bin".to_owned()), extent.probes)?),
            _ => None,
        };
        Ok(Self { operations, blocks, probes, blocks_written: 0, probes_written: 0, made: mem::take(made) })
    }

    /// Removes the files: nothing was stamped.
    pub(crate) fn discard(self) {
        remove(&self.made);
    }

    /// Keeps an operation: begin, stamp between (0: none), end.
    #[inline]
    pub(crate) fn finish_operation(&self, seq: u32, step: Step, [start_ns, mid_ns, end_ns]: [u64; 3]) {
        let place = self.operations.place(seq as usize);
        if place.is_null() {
            return;
        }
        let end = AtomicU64::new(0);
        let (op, size) = (step.operation as u32, u64::from(step.size));
        // SAFETY: valid and aligned; this process alone writes the file, from one thread.
        unsafe { place.write(OperationRecord { seq, op, size, start_ns, mid_ns, end_ns: end }) };
        // SAFETY: the record was just written.
        let record = unsafe { &*place };
        // ORDERING: Release: pairs with whoever reads the file after this process was killed. A record
        // with an end has all its other fields.
        record.end_ns.store(end_ns, Release);
    }

    /// Keeps the state at a block.
    pub(crate) fn add_block(&mut self, record: BlockRecord) {
        self.blocks.set(self.blocks_written, record);
        self.blocks_written += 1;
    }

    /// Keeps a probe; there is room for as many as were announced.
    pub(crate) fn add_probe(&mut self, record: ProbeRecord) {
        if let Some(probes) = &self.probes {
            probes.set(self.probes_written, record);
            self.probes_written += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Operation;

    const EXTENT: Extent = Extent { operations: 3, blocks: 2, probes: 4 };

    #[test]
    fn files_have_their_full_length_and_hold_what_was_finished() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0, EXTENT).unwrap();
        let step = Step { operation: Operation::Send, size: 77 };
        records.finish_operation(1, step, [10, 0, 20]);
        records.finish_operation(3, step, [1, 1, 1]);
        records.add_block(BlockRecord { seq: 0, cpu: 5, time_ns: 9, run_delay_ns: 8, canary_ns: 1.5 });
        records.add_probe(ProbeRecord { seq: 0, unused: 0, send0_ns: 1, time1_ns: 2, recv0_ns: 3 });
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let operations = read("operations.0.bin");
        assert_eq!(operations.len(), 120);
        assert_eq!(operations[..40], [0; 40]);
        assert_eq!(operations[40..56], [1, 0, 0, 0, 3, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(operations[72..80], 20_u64.to_le_bytes());
        assert_eq!(operations[80..], [0; 40]);
        assert_eq!(read("blocks.0.bin")[24..32], 1.5_f64.to_le_bytes());
        assert_eq!(read("probes.bin").len(), 128);
    }

    #[test]
    fn a_trace_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        drop(Records::create(folder.path(), 1, EXTENT).unwrap());
        let error = Records::create(folder.path(), 1, EXTENT).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("never overwritten"), "{error}");
    }

    #[test]
    fn files_that_were_not_all_made_are_not_left() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("probes.bin"), "of another run").unwrap();
        assert!(Records::create(folder.path(), 0, EXTENT).is_err());
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_full_disk_is_named() {
        let error = file_error(Path::new("x"), &Errno::ENOSPC.into());
        assert!(error.to_string().starts_with("no room for `x`: "), "{error}");
    }
}
