//! Where a break lies once the curves on both sides are known, and where curves lie once breaks are.

use crate::segment::groups::{CUT, Groups, Weighted};
use crate::segment::levels::{levels, usable};
use crate::segment::options::{NoiseScale, SegmentOptions};
use crate::segment::piece::Piece;

/// Distinct x looked at on either side of a break.
const REACH: usize = 4000;

/// Moves every break to where the points fit the curves of their own sides best.
///
/// The search cuts residuals around the curve of the round before. A point beside a jump that was counted to the wrong side is
/// cut to that side's curve, and stays there in every later round. Here each side judges a point by its own curve, so
/// that the next round starts from the right side. Residuals are cut at 3 sigma as in the search.
pub(super) fn settle(
    groups: &Groups,
    pieces: &[Piece],
    breaks: &[usize],
    spread: &[f64],
    options: &SegmentOptions,
) -> Vec<usize> {
    let mut settled = breaks.to_vec();
    let shortest = options.shortest.max(1);
    for index in 0..breaks.len() {
        let at = settled[index];
        let before = if index == 0 { 0 } else { settled[index - 1] };
        let after = breaks.get(index + 1).copied().unwrap_or(groups.count());
        let low = (before + shortest).max(at.saturating_sub(REACH));
        let high = after.saturating_sub(shortest).min(at + REACH);
        if low >= high {
            continue;
        }
        let gain = |group: usize| {
            loss(groups, group, &pieces[index], spread[group], options)
                - loss(groups, group, &pieces[index + 1], spread[group], options)
        };
        // What it costs to move the break from `low` up, one x at a time.
        let (mut cost, mut least, mut best) = (0.0, 0.0, low);
        for place in low..=high {
            if cost < least || (cost <= least && place.abs_diff(at) < best.abs_diff(at)) {
                (least, best) = (cost, place);
            }
            if place < high {
                cost += gain(place);
            }
        }
        settled[index] = best;
    }
    settled
}

/// Cut squares of the residuals of one x around a curve.
pub(super) fn loss(
    groups: &Groups,
    group: usize,
    piece: &Piece,
    sigma: f64,
    options: &SegmentOptions,
) -> f64 {
    let level = piece.at(groups.x[group]);
    let unit = if options.noise == NoiseScale::Proportional { sigma * level.abs() } else { sigma };
    let most = if options.robust { CUT * CUT } else { f64::INFINITY };
    groups.values(group).iter().map(|value| ((value - level) / unit).powi(2).min(most)).sum()
}

/// How far a curve may move in its next round, in sigmas, and be settled.
const STILL: f64 = 0.5;

/// Most rounds in which a curve moves between the same breaks. Cut residuals move it by less than three sigmas a round.
const MOVES: usize = 60;

/// Whether the curves between breaks are those that residuals were cut around.
pub(super) fn is_settled(
    groups: &Groups,
    weighted: &Weighted,
    level: &[f64],
    breaks: &[usize],
    options: &SegmentOptions,
) -> bool {
    is_still(groups, weighted, level, levels(groups, &weighted.groups, breaks, 0, options), options.noise)
}

/// Whether the curves of the next round are where those of this one are.
fn is_still(
    groups: &Groups,
    weighted: &Weighted,
    level: &[f64],
    mut next: Vec<f64>,
    noise: NoiseScale,
) -> bool {
    usable(&mut next, level, groups, noise);
    next.iter().zip(level).zip(&weighted.spread).all(|((next, level), spread)| {
        let unit = if noise == NoiseScale::Proportional { *level } else { 1.0 };
        (next - level).abs() <= STILL * spread * unit
    })
}

/// Moves the curves between the same breaks until they stay.
pub(super) fn settled_levels(
    groups: &Groups,
    mut level: Vec<f64>,
    breaks: &[usize],
    pilot: &[f64],
    options: &SegmentOptions,
) -> Vec<f64> {
    for _ in 0..MOVES {
        let weighted = Weighted::new(groups, &level, options);
        let next = levels(groups, &weighted.groups, breaks, 0, options);
        let is_last = is_still(groups, &weighted, &level, next.clone(), options.noise);
        level = next;
        usable(&mut level, pilot, groups, options.noise);
        if is_last {
            break;
        }
    }
    level
}
