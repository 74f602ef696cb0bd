//! Coarse-to-fine search: an upper bound that is a partition, a lower bound that discards cells, until both meet.

use crate::segment::bound::{Cell, chains};
use crate::segment::exact::{best_partition, partition_cost};
use crate::segment::limits::Limits;
use crate::segment::tree::Tree;

/// A partition with the proof of how far it is from the best.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) breaks: Vec<usize>,
    pub(super) cost: f64,
    /// No partition costs less than this.
    pub(super) bound: f64,
    pub(super) evaluations: usize,
}

impl Found {
    /// A partition of which nothing is shown.
    pub(super) fn unproven(tree: &Tree<'_>, breaks: Vec<usize>, limits: &Limits) -> Found {
        let cost = partition_cost(tree, &breaks, limits.penalty, &limits.prices);
        Found { breaks, cost, bound: f64::NEG_INFINITY, evaluations: 0 }
    }
}

/// Fewer positions than this are searched completely.
const FEW: usize = 320;
/// Cells of one round.
const CELLS: usize = 256;

/// A good partition without proof.
pub(super) fn guess(tree: &Tree<'_>, limits: &Limits) -> Vec<usize> {
    if tree.count() <= FEW {
        let positions: Vec<usize> = (1..tree.count()).collect();
        return complete(tree, &positions, limits, 0).breaks;
    }
    upper(tree, &first_cells(tree), limits, &mut 0).0
}

fn first_cells(tree: &Tree<'_>) -> Vec<Cell> {
    Cell { low: 1, high: tree.count() - 1 }.split(tree, CELLS.min(tree.count() / 4))
}

pub(super) fn search(tree: &Tree<'_>, limits: &Limits) -> Found {
    let mut work = 0;
    if tree.count() <= FEW {
        let positions: Vec<usize> = (1..tree.count()).collect();
        return complete(tree, &positions, limits, work);
    }
    let mut cells = first_cells(tree);
    let (mut breaks, mut cost) = upper(tree, &cells, limits, &mut work);
    let slack = |cost: f64| 1e-9 * (1.0 + cost.abs());
    loop {
        let found = chains(tree, &cells, limits, &mut work);
        let bound = found.least.min(cost);
        let kept: Vec<Cell> = cells
            .iter()
            .zip(&found.through)
            .filter(|&(_, &through)| through <= cost + slack(cost))
            .map(|(&cell, _)| cell)
            .collect();
        let left: usize = kept.iter().map(|cell| cell.size()).sum();
        if left <= FEW {
            let positions: Vec<usize> = kept.iter().flat_map(|cell| cell.low..=cell.high).collect();
            return better(complete(tree, &positions, limits, work), breaks, cost);
        }
        let finest = kept.iter().all(|cell| cell.size() == 1);
        if work > limits.budget || finest {
            return Found { breaks, cost, bound, evaluations: work };
        }
        let parts = (2 * CELLS / kept.len()).clamp(2, 16);
        cells = kept.iter().flat_map(|cell| cell.split(tree, parts)).collect();
        let (other, price) = upper(tree, &cells, limits, &mut work);
        if price < cost {
            (breaks, cost) = (other, price);
        }
    }
}

/// Every other partition has been shown to cost more, so the best of what is left is the best of all.
fn complete(tree: &Tree<'_>, positions: &[usize], limits: &Limits, mut work: usize) -> Found {
    let (breaks, cost) = best_partition(tree, positions, limits, &mut work);
    Found { breaks, cost, bound: cost, evaluations: work }
}

fn better(found: Found, breaks: Vec<usize>, cost: f64) -> Found {
    if found.cost <= cost { found } else { Found { breaks, cost, ..found } }
}

/// A good partition: the best over the middles of cells, then every break moved within its neighbourhood.
fn upper(tree: &Tree<'_>, cells: &[Cell], limits: &Limits, work: &mut usize) -> (Vec<usize>, f64) {
    let middles: Vec<usize> = cells.iter().map(|cell| usize::midpoint(cell.low, cell.high)).collect();
    let (mut breaks, _) = best_partition(tree, &middles, limits, work);
    // Two rounds: a break that was pulled to its place may make its neighbour superfluous, which frees a third.
    for _ in 0..2 {
        place_anew(tree, cells, &mut breaks, limits, work);
        drop_superfluous(tree, &mut breaks, limits);
    }
    let cost = partition_cost(tree, &breaks, limits.penalty, &limits.prices);
    (breaks, cost)
}

fn neighbours(tree: &Tree<'_>, breaks: &[usize], index: usize) -> (usize, usize) {
    let before = if index == 0 { 0 } else { breaks[index - 1] };
    (before, breaks.get(index + 1).copied().unwrap_or(tree.count()))
}

/// Moves every break to its best place within its cell and the two beside it.
fn place_anew(tree: &Tree<'_>, cells: &[Cell], breaks: &mut [usize], limits: &Limits, work: &mut usize) {
    for index in 0..breaks.len() {
        let (before, after) = neighbours(tree, breaks, index);
        let at = cells.partition_point(|cell| cell.high < breaks[index]);
        let low = cells[at.saturating_sub(1)].low.max(before + limits.shortest);
        let high = cells[(at + 1).min(cells.len() - 1)].high.min(after.saturating_sub(limits.shortest));
        if low < high {
            breaks[index] = best_place(tree, (before, after), (low, high), limits, work).0;
        }
    }
}

/// Removes breaks that cost more than they save, the most expensive first.
fn drop_superfluous(tree: &Tree<'_>, breaks: &mut Vec<usize>, limits: &Limits) {
    let cost = |from: usize, to: usize| tree.range(from, to).cost(&limits.prices);
    loop {
        let worst = (0..breaks.len())
            .map(|index| {
                let (before, after) = neighbours(tree, breaks, index);
                let apart = cost(before, breaks[index]) + cost(breaks[index], after) + limits.penalty;
                (index, apart - cost(before, after))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match worst {
            Some((index, waste)) if waste > 0.0 => breaks.remove(index),
            _ => return,
        };
    }
}

/// The best position in `low..=high` for one break between two others, and the cost of both pieces there.
pub(super) fn best_place(
    tree: &Tree<'_>,
    outer: (usize, usize),
    range: (usize, usize),
    limits: &Limits,
    work: &mut usize,
) -> (usize, f64) {
    let (low, high) = range;
    let mut rights = vec![0.0; high - low + 1];
    let mut right = tree.range(high, outer.1);
    for position in (low..=high).rev() {
        if position < high {
            right.join(tree.group(position));
        }
        rights[position - low] = right.cost(&limits.prices);
    }
    let mut left = tree.range(outer.0, low);
    let mut best = (low, f64::INFINITY);
    for position in low..=high {
        if position > low {
            left.join(tree.group(position - 1));
        }
        let cost = left.cost(&limits.prices) + rights[position - low];
        if cost < best.1 {
            best = (position, cost);
        }
    }
    *work += 2 * (high - low + 1);
    best
}
