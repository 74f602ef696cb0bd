//! Watches threads and the host while a program is executed: who took a CPU from whom, and when.
//!
//! One event per CPU (`PERF_COUNT_SW_DUMMY` with `context_switch`, `comm` and `task`) makes the kernel record
//! every switch on that CPU with both sides, the names of threads, and their beginning and end; all stamps are
//! of `CLOCK_MONOTONIC`. The records of all CPUs are merged by time, and of the watched threads the time away
//! from a CPU is kept, with whoever came next on it. A thread that comes back on another CPU has migrated.
//! Processes in containers are processes of the host, so they are watched as any other.
//!
//! Files: rows of fixed length, little-endian.
//!
//! | file | row |
//! |---|---|
//! | `switches.bin` | thread `[u8; 16]`, next name `[u8; 16]`, off `u64`, on `u64` [ns], cpu `u32`, next process `i32` (-1: one that was ending), flags `u64` (bit 0: preempted) |
//! | `migrations.bin` | thread `[u8; 16]`, time `u64` [ns], from `u32`, to `u32` |
//! | `samples.bin` | time, steal, interrupts, pressure of cpu, io, memory (all `i64` [ns]; -1: not offered), runnable threads `i64` |
//!
//! The watcher has the class `SCHED_BATCH`: when it wakes, it does not preempt anybody. Where it may, it takes the
//! nice value -10, so that it does not starve on a busy host. It keeps off the CPUs
//! on which the watched threads were last, as long as there are others.

mod cpus;
mod error;
mod options;
mod output;
mod samples;
mod switches;
mod threads;
mod watch;

use std::io::Write;

pub use error::WatchError;
pub use options::{Options, USAGE};

/// Executes one command line, without the program's name.
///
/// # Errors
///
/// [`WatchError::Usage`] for a wrong request, [`WatchError::System`] if the files cannot be written.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), WatchError> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        let written = stdout.write_all(USAGE.as_bytes());
        return written.map_err(|error| WatchError::system("writing to standard output", error));
    }
    watch::watch(&Options::parse(words)?, stdout)
}
