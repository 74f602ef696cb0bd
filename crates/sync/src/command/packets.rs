use std::io::Write;
use std::time::Instant;

use crate::arguments::Arguments;
use crate::{SyncError, fingerprint, source_means};

pub(super) fn fingerprint_of(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
    let iterations = arguments.small("ITERATIONS", &(0..=u64::from(u32::MAX)))?;
    let seed = arguments.number("SEED", &(0..=(1 << 48) - 1))?;
    arguments.finish()?;
    Ok(writeln!(stdout, "{}", fingerprint(iterations, seed))?)
}

pub(super) fn source_means_of(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
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
pub(super) fn rate(mut arguments: Arguments<'_>, stdout: &mut dyn Write) -> Result<(), SyncError> {
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
    let per_s = count as f64 / start.elapsed().as_secs_f64();
    Ok(writeln!(stdout, "{per_s:.0}")?)
}
