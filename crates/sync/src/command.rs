mod locks;
mod packets;
mod report;

use std::io::Write;

use steelyard_work::Report;

use crate::arguments::{Arguments, DEPTHS, PipelineOptions};
use crate::{End, Outcome, Settings, Strategy, SyncError, parallel, serial};
use report::open_report;

/// Text of `--help`.
pub const USAGE: &str = "\
Parallel packet processing: a dispatcher deals packets from n sources to n queues, workers compute
a fingerprint of each.

Usage:
  steelyard-packets serial M n W U s [correct]
  steelyard-packets parallel M n W U s D L S [correct] [--workers K] [--pin LIST]
  steelyard-packets fingerprint ITERATIONS SEED
  steelyard-packets source-means W n s
  steelyard-packets rate W
  steelyard-packets independent W THREADS MS
  steelyard-packets counter L THREADS MS
  steelyard-packets sleeper L THREADS MS
  steelyard-packets uncontended L COUNT

Arguments:
  M   length of the run [ms]; with `correct`, packets from each source
  n   sources and queues, 1 to 255
  W   mean work of a packet [iterations]
  U   work: `t` uniform, `f` exponential with a mean of its own for each source
  s   number of the trial, which seeds the generators
  D   packets a queue can hold, 1 to 1048576
  L   lock of a queue: `n` none, `t` TAS, `b` TTAS + backoff, `k` ticket, `s` std mutex,
      `p` pthread mutex, `g` parking_lot, `a` Anderson array, `c` CLH, `m` MCS
  S   strategy; H, A, R, Q and F need a lock, L, W and M take none and ignore L:
      `L` LockFree: one worker per queue; needs K = n
      `H` HomeQueue: one worker per queue, holds the lock until it has got a packet
      `A` Awesome: each worker goes round all queues and tries their locks
      `R` RandomQueue: as A, at random
      `Q` LastQueue: as A, stays where it found a packet
      `W` work stealing: own queue first, then from others
      `M` one shared queue of n times D packets
      `B` batch dequeue: as A, up to half a queue at once; with L = `n` as L
      `F` leader/followers: no dispatcher and no queues; workers draw half of D packets in turn under L; needs
          a source that workers may draw from; workers beyond the cores return at once

Options:
  --workers K   worker threads, 1 to 1024; n if it is left out
  --pin LIST    CPUs as in `0,2-3`: the dispatcher, if any, gets the first, workers the following

Single questions:
  fingerprint   the fingerprint of a packet
  source-means  mean work of each source under exponential load
  rate          fingerprints of mean work per second on one core: what a worker could do at most
  independent   fingerprints that threads compute, each for itself: how the machine scales
  counter       threads increment a counter under one lock: rate, slowdown over one thread with the same lock,
                slowdown over a serial counter without a lock, and how often each thread had its turn
  sleeper       the same while the holder sleeps 1 ms: does waiting leave the cores to others?
  uncontended   time of one lock and unlock that nobody else wants [ns]

`serial` and `parallel` print one number: the packets finished before the time was over, or, with `correct`, the
sum of their fingerprints. More is reported to the descriptor in STEELYARD_METRICS_FD as lines
`name value unit iteration phase`.

Exit codes: 0 done, 1 the system refused, 2 wrong usage.

Example:
  steelyard-packets serial 2000 4 1000 t 1
  steelyard-packets parallel 2000 4 1000 t 1 32 b A --workers 2
";

const KNOWN: &str = "`serial`, `parallel`, `fingerprint`, `source-means`, `rate`, `independent`, `counter`, `sleeper`, `uncontended`";

/// Executes one command line, without the program's name.
///
/// # Errors
///
/// [`SyncError::Usage`] for a wrong command line, the others as they arise.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), SyncError> {
    let Some((command, rest)) = words.split_first() else {
        return Err(SyncError::usage(format!("no command; known: {KNOWN}")));
    };
    let arguments = Arguments::new(rest);
    match command.as_str() {
        "serial" => execute_serial(arguments, stdout),
        "parallel" => execute_parallel(arguments, stdout),
        "fingerprint" => packets::fingerprint_of(arguments, stdout),
        "source-means" => packets::source_means_of(arguments, stdout),
        "rate" => packets::rate(arguments, stdout),
        "independent" => locks::independent_threads(arguments, stdout),
        "counter" => locks::counter(arguments, stdout),
        "sleeper" => locks::sleeper(arguments, stdout),
        "uncontended" => locks::uncontended(arguments, stdout),
        "--help" | "-h" | "help" => Ok(stdout.write_all(USAGE.as_bytes())?),
        "--version" => Ok(writeln!(stdout, "steelyard-packets {}", env!("CARGO_PKG_VERSION"))?),
        other => Err(SyncError::usage(format!("`{other}` is not a command; known: {KNOWN}"))),
    }
}

fn execute_serial(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let load = arguments.load()?;
    let load = arguments.end(load);
    arguments.finish()?;
    let report = open_report()?;
    finish(&serial(&load), load.end, report, stdout)
}

fn execute_parallel(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let load = arguments.load()?;
    let depth = arguments.number("D", &DEPTHS)?;
    let lock = arguments.lock()?;
    let strategy = arguments.choice("S", &Strategy::ALL)?;
    let load = arguments.end(load);
    let options = PipelineOptions::read(arguments.rest())?;
    let settings = Settings {
        workers: options.workers.unwrap_or(load.sources as usize),
        depth: usize::try_from(depth).unwrap_or(usize::MAX),
        lock,
        strategy,
        cpus: options.cpus,
    };
    let report = open_report()?;
    finish(&parallel(&load, &settings)?, load.end, report, stdout)
}

/// Prints the one number and reports the rest.
fn finish(outcome: &Outcome, end: End, mut report: Report, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let answer = match end {
        End::After(_) => outcome.packets(),
        End::Packets(_) => outcome.checksum(),
    };
    writeln!(stdout, "{answer}")?;
    outcome.report(&mut report);
    report.write(stdout)?;
    Ok(stdout.flush()?)
}

#[cfg(test)]
mod tests;
