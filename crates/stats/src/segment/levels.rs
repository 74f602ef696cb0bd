//! The value of a piecewise model at every x, which its points are weighted by.

use crate::sample::real;
use crate::segment::groups::{CUT, Groups};
use crate::segment::limits::limits;
use crate::segment::moments::Both;
use crate::segment::options::{NoiseScale, SegmentOptions};
use crate::segment::piece::{Piece, piece, ranges};

/// Falls back to the pilot where a fitted curve left the range of numbers that can be weighted by.
pub(super) fn usable(level: &mut [f64], pilot: &[f64], groups: &Groups, noise: NoiseScale) {
    for (group, (fitted, &first)) in level.iter_mut().zip(pilot).enumerate() {
        // A line may cross zero where it has no points to hold it.
        let near = first.min(groups.middle(group));
        let is_far = noise == NoiseScale::Proportional && *fitted < 0.1 * near;
        if is_far || !fitted.is_finite() {
            *fitted = first;
        }
    }
}

/// The fitted curve at every x.
///
/// Cut residuals cost at most `CUT`^2, so a piece of fewer points than two breaks are worth cannot pay for itself: it only
/// follows a pilot that was smeared over a jump. Its points get the curve of a neighbour, whichever is nearer.
pub(super) fn levels(
    groups: &Groups,
    weighted: &[Both],
    breaks: &[usize],
    smeared: usize,
    options: &SegmentOptions,
) -> Vec<f64> {
    let limits = limits(groups.y.len(), options);
    let fewest = if options.robust { (2.0 * limits.penalty / (CUT * CUT)).max(real(smeared)) } else { 0.0 };
    let pieces: Vec<((usize, usize), Piece)> = ranges(breaks, groups.count())
        .into_iter()
        .map(|range| (range, piece(groups, weighted, range, &limits)))
        .collect();
    let is_solid: Vec<bool> = pieces.iter().map(|(_, piece)| real(piece.points) >= fewest).collect();
    let mut found = Vec::with_capacity(groups.count());
    for (index, &((from, to), own)) in pieces.iter().enumerate() {
        let left = (0..index).rev().find(|&other| is_solid[other]);
        let right = (index + 1..pieces.len()).find(|&other| is_solid[other]);
        for group in from..to {
            let x = groups.x[group];
            let middle = groups.middle(group);
            let nearest = [left, right]
                .into_iter()
                .flatten()
                .map(|other| pieces[other].1.at(x))
                .min_by(|a, b| (a - middle).abs().total_cmp(&(b - middle).abs()));
            found.push(if is_solid[index] { own.at(x) } else { nearest.unwrap_or_else(|| own.at(x)) });
        }
    }
    found
}
