//! The files of a watch.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::WatchError;
use crate::samples::Sample;
use crate::switches::{Migration, Rows, Switch};

/// Three files of rows of fixed length, which together stay below a limit.
#[derive(Debug)]
pub(crate) struct Output {
    switches: Sink,
    migrations: Sink,
    samples: Sink,
    room_bytes: u64,
    /// Rows that the limit left out.
    pub(crate) left_out: u64,
    problem: Option<std::io::Error>,
}

#[derive(Debug)]
struct Sink {
    file: BufWriter<File>,
    rows: u64,
}

impl Sink {
    fn create(folder: &Path, name: &str) -> Result<Self, WatchError> {
        let path = folder.join(name);
        let file = File::create(&path)
            .map_err(|error| WatchError::system(format!("creating `{}`", path.display()), error))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 16, file), rows: 0 })
    }
}

impl Output {
    pub(crate) fn create(folder: &Path, limit_mib: u64) -> Result<Self, WatchError> {
        std::fs::create_dir_all(folder)
            .map_err(|error| WatchError::system(format!("making `{}`", folder.display()), error))?;
        Ok(Self {
            switches: Sink::create(folder, "switches.bin")?,
            migrations: Sink::create(folder, "migrations.bin")?,
            samples: Sink::create(folder, "samples.bin")?,
            room_bytes: limit_mib << 20,
            left_out: 0,
            problem: None,
        })
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let values = [
            sample.time_ns,
            sample.steal_ns,
            sample.interrupt_ns,
            sample.cpu_pressure_ns,
            sample.io_pressure_ns,
            sample.memory_pressure_ns,
            sample.running_threads,
        ];
        let mut row = [0; 56];
        for (place, value) in row.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.keep(|output| &mut output.samples, &row);
    }

    /// Rows of switches, migrations and samples.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [self.switches.rows, self.migrations.rows, self.samples.rows]
    }

    /// Writes what is still in memory, and tells of the first write that failed.
    pub(crate) fn flush(&mut self) -> Result<(), WatchError> {
        for sink in [&mut self.switches, &mut self.migrations, &mut self.samples] {
            if let Err(error) = sink.file.flush() {
                self.problem.get_or_insert(error);
            }
        }
        self.problem.take().map_or(Ok(()), |error| Err(WatchError::system("writing what was watched", error)))
    }

    fn keep(&mut self, sink: impl Fn(&mut Self) -> &mut Sink, row: &[u8]) {
        let Some(room_bytes) = self.room_bytes.checked_sub(row.len() as u64) else {
            self.left_out += 1;
            return;
        };
        self.room_bytes = room_bytes;
        let target = sink(self);
        target.rows += 1;
        if let Err(error) = target.file.write_all(row) {
            self.problem.get_or_insert(error);
        }
    }
}

impl Rows for Output {
    fn switch(&mut self, switch: &Switch) {
        let mut row = [0; 64];
        row[..16].copy_from_slice(&switch.thread);
        row[16..32].copy_from_slice(&switch.next_name);
        row[32..40].copy_from_slice(&switch.off_ns.to_le_bytes());
        row[40..48].copy_from_slice(&switch.on_ns.to_le_bytes());
        row[48..52].copy_from_slice(&switch.cpu.to_le_bytes());
        row[52..56].copy_from_slice(&switch.next_process.to_le_bytes());
        row[56..].copy_from_slice(&u64::from(switch.is_preempted).to_le_bytes());
        self.keep(|output| &mut output.switches, &row);
    }

    fn migration(&mut self, migration: &Migration) {
        let mut row = [0; 32];
        row[..16].copy_from_slice(&migration.thread);
        row[16..24].copy_from_slice(&migration.time_ns.to_le_bytes());
        row[24..28].copy_from_slice(&migration.from.to_le_bytes());
        row[28..].copy_from_slice(&migration.to.to_le_bytes());
        self.keep(|output| &mut output.migrations, &row);
    }
}
