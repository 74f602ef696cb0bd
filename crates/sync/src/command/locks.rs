use std::io::Write;
use std::ops::RangeInclusive;

use steelyard_work::Position;

use super::report::open_report;
use crate::arguments::Arguments;
use crate::{
    Contest, LockKind, SLEEP, Section, SyncError, contest, count_alone, independent, uncontended_ns,
};

const THREADS: RangeInclusive<u64> = 1..=1024;
/// Ten minutes at most.
const LENGTHS: RangeInclusive<u64> = 1..=600_000;
const COUNTS: RangeInclusive<u64> = 1..=10_000_000_000;

/// What `counter` and `sleeper` take.
fn contest_arguments(mut arguments: Arguments<'_>) -> Result<(LockKind, usize, u64), SyncError> {
    let kind = arguments.lock_only()?;
    let threads = usize::try_from(arguments.number("THREADS", &THREADS)?).unwrap_or(usize::MAX);
    let ms = arguments.number("MS", &LENGTHS)?;
    arguments.finish()?;
    Ok((kind, threads, ms))
}

pub(super) fn counter(arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let (kind, threads, ms) = contest_arguments(arguments)?;
    let count = |threads| contest(kind, threads, ms, Section::Increment);
    // Two references: the same lock when nobody else wants it, which leaves contention, and no lock at all.
    let serial_per_s = count_alone(ms).rate_per_s();
    let one_thread = (threads > 1).then(|| count(1).rate_per_s());
    let outcome = count(threads);
    let rate_per_s = outcome.rate_per_s();
    let one_thread_per_s = one_thread.unwrap_or(rate_per_s);
    writeln!(stdout, "rate_per_s {rate_per_s:.0}")?;
    writeln!(stdout, "one_thread_rate_per_s {one_thread_per_s:.0}")?;
    writeln!(stdout, "serial_rate_per_s {serial_per_s:.0}")?;
    writeln!(stdout, "slowdown {:.3}", one_thread_per_s / rate_per_s)?;
    writeln!(stdout, "slowdown_over_serial {:.3}", serial_per_s / rate_per_s)?;
    finish(&outcome, stdout)
}

pub(super) fn sleeper(arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let (kind, threads, ms) = contest_arguments(arguments)?;
    let outcome = contest(kind, threads, ms, Section::Sleep(SLEEP));
    writeln!(stdout, "rate_per_s {:.1}", outcome.rate_per_s())?;
    writeln!(stdout, "ideal_rate_per_s {:.1}", 1.0 / SLEEP.as_secs_f64())?;
    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
    let share = outcome.times.cpu_ns as f64 / outcome.times.wall_ns as f64;
    writeln!(stdout, "cpu_per_wall {share:.4}")?;
    finish(&outcome, stdout)
}

pub(super) fn independent_threads(
    mut arguments: Arguments<'_>,
    stdout: &mut dyn Write,
) -> Result<(), SyncError> {
    let mean = arguments.mean()?;
    let threads = usize::try_from(arguments.number("THREADS", &THREADS)?).unwrap_or(usize::MAX);
    let ms = arguments.number("MS", &LENGTHS)?;
    arguments.finish()?;
    let outcome = independent(mean, threads, ms);
    writeln!(stdout, "rate_per_s {:.0}", outcome.rate_per_s())?;
    finish(&outcome, stdout)
}

fn finish(outcome: &Contest, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let mut report = open_report()?;
    let at =
        |index: usize| Position { iteration: u32::try_from(index).unwrap_or(u32::MAX), phase: "measure" };
    writeln!(stdout, "unfairness {:.4}", outcome.unfairness())?;
    report.add("sections", outcome.sections(), "count", at(0));
    report.add("wall", outcome.times.wall_ns, "ns", at(0));
    report.add("cpu", outcome.times.cpu_ns, "ns", at(0));
    for (thread, sections) in outcome.by_thread.iter().enumerate() {
        writeln!(stdout, "thread {thread} {sections}")?;
        report.add("thread_sections", *sections, "count", at(thread));
    }
    report.write(stdout)?;
    Ok(stdout.flush()?)
}

pub(super) fn uncontended(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let kind = arguments.lock_only()?;
    let count = arguments.number("COUNT", &COUNTS)?;
    arguments.finish()?;
    Ok(writeln!(stdout, "{:.3}", uncontended_ns(kind, count))?)
}
