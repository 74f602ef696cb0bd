use std::io::Write;
use std::time::Instant;

use steelyard_work::Report;

use crate::arguments::Arguments;
use crate::{End, Outcome, SyncError, fingerprint, serial, source_means};

/// Text of `--help`.
pub const USAGE: &str = "\
Parallel packet processing: a dispatcher deals packets from n sources to n queues, workers compute
a fingerprint of each.

Usage:
  steelyard-packets serial M n W U s [correct]
  steelyard-packets fingerprint ITERATIONS SEED
  steelyard-packets source-means W n s
  steelyard-packets rate W

Arguments:
  M   length of the run [ms]; with `correct`, packets from each source
  n   sources and queues, 1 to 255
  W   mean work of a packet [iterations]
  U   work: `t` uniform, `f` exponential with a mean of its own for each source
  s   number of the trial, which seeds the generators

`serial` prints one number: the packets finished before the time was over, or, with `correct`, the
sum of their fingerprints. More is reported to the descriptor in STEELYARD_METRICS_FD as lines
`name value unit iteration phase`.

Exit codes: 0 done, 1 the system refused, 2 wrong usage.

Example:
  steelyard-packets serial 2000 4 1000 t 1
";

/// Executes one command line, without the program's name.
///
/// # Errors
///
/// [`SyncError::Usage`] for a wrong command line, the others as they arise.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), SyncError> {
    let Some((command, rest)) = words.split_first() else {
        return Err(SyncError::usage("no command; known: `serial`, `fingerprint`, `source-means`, `rate`"));
    };
    let arguments = Arguments::new(rest);
    match command.as_str() {
        "serial" => execute_serial(arguments, stdout),
        "fingerprint" => execute_fingerprint(arguments, stdout),
        "source-means" => execute_source_means(arguments, stdout),
        "rate" => execute_rate(arguments, stdout),
        "--help" | "-h" | "help" => Ok(stdout.write_all(USAGE.as_bytes())?),
        "--version" => Ok(writeln!(stdout, "steelyard-packets {}", env!("CARGO_PKG_VERSION"))?),
        other => Err(SyncError::usage(format!(
            "`{other}` is not a command; known: `serial`, `fingerprint`, `source-means`, `rate`"
        ))),
    }
}

fn execute_serial(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let load = arguments.load()?;
    let load = arguments.end(load);
    arguments.finish()?;
    let report = open_report()?;
    finish(&serial(&load), load.end, report, stdout)
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

/// Opens the report that the environment asks for.
fn open_report() -> Result<Report, SyncError> {
    let variable = std::env::var("STEELYARD_METRICS_FD").ok();
    Ok(Report::open(variable.as_deref(), false)?)
}

fn execute_fingerprint(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let iterations = arguments.small("ITERATIONS", &(0..=u64::from(u32::MAX)))?;
    let seed = arguments.number("SEED", &(0..=(1 << 48) - 1))?;
    arguments.finish()?;
    Ok(writeln!(stdout, "{}", fingerprint(iterations, seed))?)
}

fn execute_source_means(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let mean = arguments.mean()?;
    let count = arguments.sources()?;
    let trial = arguments.trial()?;
    arguments.finish()?;
    for value in source_means(mean, count, trial) {
        writeln!(stdout, "{value}")?;
    }
    Ok(())
}

/// Time over which a rate is measured [ms].
const RATE_MS: u128 = 200;

/// Fingerprints per second of packets that all have the mean work: what one worker could do at
/// most, with nothing to draw, to pass on or to wait for.
fn execute_rate(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let mean = arguments.mean()?;
    arguments.finish()?;
    let start = Instant::now();
    let (mut count, mut seed) = (0_u64, 1);
    while start.elapsed().as_millis() < RATE_MS {
        // Enough packets between two looks at the clock that reading it costs nothing.
        for _ in 0..=100_000 / mean {
            seed = fingerprint(mean, seed);
            count += 1;
        }
    }
    std::hint::black_box(seed);
    #[expect(clippy::cast_precision_loss, reason = "counts of a fifth of a second are below 2^53")]
    let rate = count as f64 / start.elapsed().as_secs_f64();
    Ok(writeln!(stdout, "{rate:.0}")?)
}

#[cfg(test)]
mod tests;
