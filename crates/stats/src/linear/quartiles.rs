//! Quartiles of residuals without sorting, or keeping, them.
//!
//! A sample of the residuals says between which values each quartile surely lies; one pass counts what lies below and keeps
//! what lies between. A sample that misled costs a selection among all residuals.

use rand_core::Rng;

use crate::linear::parts::{BLOCK, over_parts};
use crate::linear::single::Line;
use crate::order::Position;
use crate::sample::{real, whole};
use crate::stream::stream;

/// Fewer residuals than this are selected among directly.
const MANY: usize = 1 << 17;
const SAMPLE: usize = 1 << 13;
const PROBABILITIES: [f64; 3] = [0.25, 0.5, 0.75];

/// Quantiles of type 7 at 0, 1/4, 1/2, 3/4 and 1.
pub(super) fn quartiles(line: &Line<'_>, lowest: f64, highest: f64) -> [f64; 5] {
    let inner = if line.count() < MANY { None } else { between(line) };
    match inner {
        Some([first, second, third]) => [lowest, first, second, third, highest],
        None => of_values(line.residuals()),
    }
}

/// The same of residuals that are there.
pub(super) fn of_values(mut values: Vec<f64>) -> [f64; 5] {
    let count = values.len();
    let all = [0.0, PROBABILITIES[0], PROBABILITIES[1], PROBABILITIES[2], 1.0];
    all.map(|p| selected(&mut values, Position::of(count, p)))
}

fn selected(values: &mut [f64], position: Position) -> f64 {
    let (_, &mut low, above) = values.select_nth_unstable_by(position.rank - 1, f64::total_cmp);
    if position.share <= 0.0 {
        return low;
    }
    let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    low + position.share * (next - low)
}

/// Limits that hold a quartile: four standard deviations of a sample quantile on either side.
fn limits(line: &Line<'_>) -> [(f64, f64); 3] {
    let mut places = stream(0, 0, 0);
    let count = line.count() as u128;
    let place = |word: u64| usize::try_from((u128::from(word) * count) >> 64).unwrap_or(0);
    let mut sample: Vec<f64> = (0..SAMPLE).map(|_| line.at(place(places.next_u64())).0).collect();
    sample.sort_unstable_by(f64::total_cmp);
    PROBABILITIES.map(|p| {
        let middle = p * real(SAMPLE);
        let margin = 4.0 * (real(SAMPLE) * p * (1.0 - p)).sqrt();
        (sample[whole(middle - margin)], sample[whole(middle + margin)])
    })
}

/// What one part says of each quartile: how many residuals lie below its limits, and those between them.
type Part = [(usize, Vec<f64>); 3];

fn between(line: &Line<'_>) -> Option<[f64; 3]> {
    let limits = limits(line);
    let parts: Vec<Part> = over_parts(line.count(), |range| {
        let mut found: Part = Default::default();
        for start in range.clone().step_by(BLOCK) {
            read_block(line, start..range.end.min(start + BLOCK), &limits, &mut found);
        }
        found
    });
    let mut quartiles = [0.0; 3];
    for (number, quartile) in quartiles.iter_mut().enumerate() {
        let position = Position::of(line.count(), PROBABILITIES[number]);
        let below: usize = parts.iter().map(|part| part[number].0).sum();
        let mut inside: Vec<f64> = parts.iter().flat_map(|part| &part[number].1).copied().collect();
        let rank = position.rank.checked_sub(below).filter(|rank| *rank >= 1)?;
        // The value that follows must be inside too.
        if rank + usize::from(position.share > 0.0) > inside.len() {
            return None;
        }
        *quartile = selected(&mut inside, Position { rank, ..position });
    }
    Some(quartiles)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a branch would be compiled value by value: twice the time of a fit"
)]
fn read_block(line: &Line<'_>, range: std::ops::Range<usize>, limits: &[(f64, f64); 3], found: &mut Part) {
    // Not a number lies nowhere; the ranks do not add up then, and all residuals are looked at.
    let mut residuals = [f64::NAN; BLOCK];
    line.read(range, &mut residuals);
    for ((low, high), (below, inside)) in limits.iter().zip(found) {
        let mut flags = [0_u8; BLOCK];
        let mut count = 0_u64;
        for (flag, residual) in flags.iter_mut().zip(&residuals) {
            count += u64::from(residual < low);
            *flag = u8::from((residual >= low) & (residual <= high));
        }
        *below += usize::try_from(count).unwrap_or(usize::MAX);
        for (eight, residuals) in flags.as_chunks::<8>().0.iter().zip(residuals.as_chunks::<8>().0) {
            let mut left = u64::from_le_bytes(*eight);
            while left != 0 {
                inside.push(residuals[(left.trailing_zeros() / 8) as usize]);
                left &= left - 1;
            }
        }
    }
}
