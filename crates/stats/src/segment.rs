//! Piecewise models: where the breaks are, how many there are, and what each piece is.
//!
//! Minimises the sum over pieces of the weighted sum of squares of the best kind of model, plus a price per slope, plus a
//! price per break, over all partitions of the distinct x with breaks between them; pieces need not meet. The search discards
//! positions only by lower bounds, so that its answer is that of optimal partitioning over all positions, and says how
//! far from it it can be where its budget ends first.

use crate::error::StatsError;
use crate::sample::{check_values, real};

mod bootstrap;
mod bound;
mod check;
mod exact;
mod groups;
mod levels;
mod limits;
mod moments;
mod options;
mod piece;
mod search;
mod settle;
mod tree;

pub use bootstrap::break_intervals;
pub use moments::PieceKind;
pub use options::{NoiseScale, SegmentOptions};
pub use piece::Piece;

use check::{check, check_positive};
use groups::{Groups, Weighted};
use levels::{levels, usable};
use limits::{PASSES, limits};
use piece::{piece, ranges};
use search::{Found, guess, search};
use settle::{is_settled, settle, settled_levels};
use tree::Tree;

/// A piecewise model with its certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Segmentation {
    /// The pieces, in the order of x.
    pub pieces: Vec<Piece>,
    /// Cost of this partition, in squared sigmas.
    pub cost: f64,
    /// No partition costs less; equal to `cost` where the search ended within its budget.
    pub bound: f64,
    /// Noise used, the floor included.
    pub sigma: f64,
    /// Costs evaluated in the last pass.
    pub evaluations: usize,
}

/// Fits a piecewise model with an unknown number of breaks.
///
/// # Errors
///
/// If fewer than 4 points are given, lengths differ, a value is not finite or beyond 1e30, a price or floor is not a number
/// of 0 to 1e30, or proportional noise is asked for values that are not positive, or below 1e-30.
pub fn fit_segments(x: &[f64], y: &[f64], options: &SegmentOptions) -> Result<Segmentation, StatsError> {
    fit_scaled_segments(x, y, &[], options)
}

/// Fits a piecewise model to points whose noise differs by known factors.
///
/// `scales` holds the noise of each point in units that are the same for all, which the fit estimates; empty if all have the
/// same. `Segmentation::sigma` is that of a point of scale 1.
///
/// # Errors
///
/// As `fit_segments`; if there is not one scale per point, or one is not positive and finite.
pub fn fit_scaled_segments(
    x: &[f64],
    y: &[f64],
    scales: &[f64],
    options: &SegmentOptions,
) -> Result<Segmentation, StatsError> {
    check(x, y, options)?;
    if !scales.is_empty() {
        check_values(scales, 1)?;
        if scales.len() != x.len() {
            return Err(StatsError::Length { found: scales.len(), needed: x.len() });
        }
        check_positive("scales", scales)?;
    }
    let groups = Groups::scaled(x, y, scales);
    let (weighted, found) = converge(&groups, options);
    Ok(describe(&groups, &weighted, &found, options))
}

/// Points up to which a second start is tried. Among more, the window of the pilot is a small part.
const FEW: usize = 2000;

/// Prices of a break by which a second search must be better than one piece: it is a second chance to take noise for breaks.
///
/// SOURCE: own simulation, 1080 samples of a line, a constant and a power law with the noise of three transports: 62 have a
/// break that is none after one search; 102 if any gain counts, 76 at 1, 64 at 4. Curves of a link that one search takes for
/// a line gain far more.
const MARGIN: f64 = 4.0;

/// Search from the pilot; among few points also from a good partition without cuts.
///
/// A pilot whose window spans much of the points is far from a steep curve at their end. Residuals are then cut around
/// the wrong curve, and the next round finds it again: a staircase, or one line through the flat part that takes the steep
/// one for outliers. The better of both ends is the one with the smaller cost around its own curve.
fn converge(groups: &Groups, options: &SegmentOptions) -> (Weighted, Found) {
    let pilot = Start { level: groups.pilot(), is_pilot: true };
    let first = rounds(groups, options, &pilot, Proof::Needed);
    if !options.robust || groups.y.len() > FEW {
        return first;
    }
    let margin =
        if first.1.breaks.is_empty() { MARGIN * limits(groups.y.len(), options).penalty } else { 0.0 };
    let is_better = |second: &(Weighted, Found)| {
        let sigma = first.0.sigma.min(second.0.sigma);
        own_cost(groups, second, sigma, options) + margin < own_cost(groups, &first, sigma, options)
    };
    // Without cuts the bounds are loose, and a proof takes a hundred times as long as the search.
    let uncut = SegmentOptions { robust: false, ..*options };
    let (weighted, found) = rounds(groups, &uncut, &pilot, Proof::Omitted(None));
    let mut level = levels(groups, &weighted.groups, &found.breaks, 0, &uncut);
    usable(&mut level, &pilot.level, groups, options.noise);
    let start = Start { level, is_pilot: false };
    let second = rounds(groups, options, &start, Proof::Omitted(Some(&first.1.breaks)));
    if second.1.breaks == first.1.breaks || !is_better(&second) {
        return first;
    }
    let second = rounds(groups, options, &start, Proof::Needed);
    if is_better(&second) { second } else { first }
}

/// Where the rounds begin.
struct Start {
    /// The curve at every x.
    level: Vec<f64>,
    /// Whether it is a guess without any curve, in which jumps are smeared.
    is_pilot: bool,
}

/// Whether a partition is shown to be the best one.
#[derive(Clone, Copy)]
enum Proof<'a> {
    Needed,
    /// No; and whoever comes by this partition is done.
    Omitted(Option<&'a [usize]>),
}

/// Cost of a partition around its own curves, residuals cut, for a given noise.
fn own_cost(
    groups: &Groups,
    (weighted, found): &(Weighted, Found),
    sigma: f64,
    options: &SegmentOptions,
) -> f64 {
    let limits = limits(groups.y.len(), options);
    let pieces = ranges(&found.breaks, groups.count()).into_iter().map(|range| {
        let own = piece(groups, &weighted.groups, range, &limits);
        let loss: f64 = (range.0..range.1)
            .map(|group| {
                let spread = weighted.spread[group] * sigma / weighted.sigma;
                settle::loss(groups, group, &own, spread, options)
            })
            .sum();
        let slope = match own.kind {
            PieceKind::Constant => limits.prices.constant,
            PieceKind::Line => limits.prices.line,
            PieceKind::Power => limits.prices.power,
        };
        loss + slope
    });
    pieces.sum::<f64>() + limits.penalty * real(found.breaks.len())
}

/// Search, then weights and cuts around what was found, until nothing moves any more.
fn rounds(groups: &Groups, options: &SegmentOptions, start: &Start, proof: Proof<'_>) -> (Weighted, Found) {
    let limits = limits(groups.y.len(), options);
    let mut level = start.level.clone();
    let mut before: Option<Vec<usize>> = None;
    let mut pass = 0;
    loop {
        let is_guess = start.is_pilot && pass == 0;
        let weighted = if is_guess {
            Weighted::around_pilot(groups, &level, options)
        } else {
            Weighted::new(groups, &level, options)
        };
        let tree = Tree::new(&weighted.groups, &groups.starts);
        pass += 1;
        // The proof is worth its price once the weights no longer change.
        let guessed = guess(&tree, &limits);
        if matches!(proof, Proof::Omitted(Some(known)) if known == guessed) {
            let found = Found::unproven(&tree, guessed, &limits);
            return (weighted, found);
        }
        let found = if pass >= PASSES || before.as_ref() == Some(&guessed) {
            let found = match proof {
                Proof::Needed => search(&tree, &limits),
                Proof::Omitted(_) => Found::unproven(&tree, guessed, &limits),
            };
            let is_same = before.as_ref() == Some(&found.breaks);
            if pass < PASSES && is_same && !is_settled(groups, &weighted, &level, &found.breaks, options) {
                level = settled_levels(groups, level, &found.breaks, &start.level, options);
                continue;
            }
            if pass >= PASSES || is_same {
                return (weighted, found);
            }
            found.breaks
        } else {
            guessed
        };
        before = Some(found.clone());
        let curves: Vec<Piece> = ranges(&found, groups.count())
            .into_iter()
            .map(|range| piece(groups, &weighted.groups, range, &limits))
            .collect();
        let settled = settle(groups, &curves, &found, &weighted.spread, options);
        let smeared = if is_guess { groups.smeared() } else { 0 };
        level = levels(groups, &weighted.groups, &settled, smeared, options);
        usable(&mut level, &start.level, groups, options.noise);
    }
}

fn describe(groups: &Groups, weighted: &Weighted, found: &Found, options: &SegmentOptions) -> Segmentation {
    let limits = limits(groups.y.len(), options);
    let pieces = ranges(&found.breaks, groups.count())
        .into_iter()
        .map(|range| piece(groups, &weighted.groups, range, &limits))
        .collect();
    Segmentation {
        pieces,
        cost: found.cost,
        bound: found.bound,
        sigma: weighted.sigma,
        evaluations: found.evaluations,
    }
}

#[cfg(test)]
mod tests;
