//! Lower bounds that decide which positions can hold a break of the optimum.
//!
//! A cell is a range of positions `low..=high`. Of a piece that begins in cell u and ends in cell v only the groups
//! `high(u)..low(v)` are surely inside; residual sums of squares never shrink when a piece grows, and those of two parts never
//! exceed those of the whole, so charging parts alone bounds the cost of every partition from below.

use crate::segment::limits::Limits;
use crate::segment::moments::Both;
use crate::segment::tree::Tree;

/// Positions `low..=high` that may hold breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) low: usize,
    pub(super) high: usize,
}

impl Cell {
    pub(super) fn size(self) -> usize {
        self.high - self.low + 1
    }

    /// Cuts the cell into at most `parts` that hold about as many points each: one x may have thousands.
    pub(super) fn split(self, tree: &Tree<'_>, parts: usize) -> Vec<Self> {
        let first = tree.points_before(self.low);
        let points = tree.points_before(self.high + 1) - first;
        let mut found = Vec::with_capacity(parts);
        let mut low = self.low;
        for part in 1..=parts {
            let share = first + points * part / parts;
            let next = if part == parts { self.high + 1 } else { tree.position_of(share).min(self.high + 1) };
            if next > low {
                found.push(Self { low, high: next - 1 });
                low = next;
            }
        }
        found
    }
}

/// Sub-cells per step of the bound inside a cell.
const PARTS: usize = 8;
/// Steps: a break inside a cell leaves about 1/64 of its groups uncharged.
const DEPTH: usize = 2;

/// What the groups `low..high` of a cell cost at least under one or more breaks in it; the first break is not charged.
pub(super) fn inside(tree: &Tree<'_>, cell: Cell, limits: &Limits, work: &mut usize) -> f64 {
    inside_to(tree, cell, limits, DEPTH, work)
}

fn inside_to(tree: &Tree<'_>, cell: Cell, limits: &Limits, depth: usize, work: &mut usize) -> f64 {
    if cell.size() == 1 || depth == 0 {
        return 0.0;
    }
    let parts = cell.split(tree, PARTS);
    let own: Vec<f64> = parts.iter().map(|&part| inside_to(tree, part, limits, depth - 1, work)).collect();
    // The part `low..low(first broken part)`, then from broken part to broken part, then the rest up to `high`.
    let whole = Cell { low: cell.low, high: cell.low };
    let mut reach = vec![f64::INFINITY; parts.len()];
    sweep(tree, whole, &parts, limits, work, |j, cost| reach[j] = cost + own[j]);
    let mut cheapest = f64::INFINITY;
    for start in 0..parts.len() {
        let base = reach[start];
        let after = &parts[start + 1..];
        let mut rest = f64::INFINITY;
        let last = Cell { low: cell.high, high: cell.high };
        let ends: Vec<Cell> = after.iter().copied().chain([last]).collect();
        sweep(tree, parts[start], &ends, limits, work, |j, cost| {
            if j < after.len() {
                let slot = &mut reach[start + 1 + j];
                *slot = slot.min(base + limits.penalty + cost + own[start + 1 + j]);
            } else {
                rest = cost;
            }
        });
        cheapest = cheapest.min(base + rest);
    }
    cheapest
}

/// Gives `found` the free cost of the groups from the end of `start` to the beginning of each of `ends`, ascending.
#[expect(clippy::too_many_arguments, reason = "one sweep and what it reports to")]
fn sweep(
    tree: &Tree<'_>,
    start: Cell,
    ends: &[Cell],
    limits: &Limits,
    work: &mut usize,
    mut found: impl FnMut(usize, f64),
) {
    let mut sum = Both::default();
    let mut at = start.high;
    for (j, end) in ends.iter().enumerate() {
        if end.low > at {
            sum.join(&tree.range(at, end.low));
            at = end.low;
        }
        *work += 1;
        found(j, if sum.plain.weight > 0.0 { sum.cost(&limits.free) } else { 0.0 });
    }
}

/// For every cell the least cost of a partition with a break in it, and the least cost of any partition.
pub(super) struct Chains {
    pub(super) through: Vec<f64>,
    pub(super) least: f64,
}

/// Bounds over all chains of cells, forwards and backwards.
pub(super) fn chains(tree: &Tree<'_>, cells: &[Cell], limits: &Limits, work: &mut usize) -> Chains {
    let count = cells.len();
    let own: Vec<f64> = cells.iter().map(|&cell| inside(tree, cell, limits, work)).collect();
    let begin = Cell { low: 0, high: 0 };
    let end = Cell { low: tree.count(), high: tree.count() };
    let stops: Vec<Cell> = [begin].into_iter().chain(cells.iter().copied()).chain([end]).collect();
    // Chunks between neighbouring low ends, and what a piece that begins at the high end has before the next one.
    let chunks: Vec<Both> = stops.windows(2).map(|pair| tree.range(pair[0].low, pair[1].low)).collect();
    let heads: Vec<Both> =
        stops.windows(2).map(|pair| tree.range(pair[0].high, pair[1].low.max(pair[0].high))).collect();
    let mut forward = vec![f64::INFINITY; stops.len()];
    forward[0] = 0.0;
    let width = stops.len();
    let mut costs = vec![f64::INFINITY; width * width];
    // A part may be steeper than a number can say where the whole piece is not.
    let (whole_prices, part_prices) = (limits.prices, limits.prices.of_parts());
    for u in 0..width - 1 {
        let mut sum = heads[u];
        for v in u + 1..width {
            if v > u + 1 {
                sum.join(&chunks[v - 1]);
            }
            if stops[v].high - stops[u].low < limits.shortest {
                continue;
            }
            let is_whole = stops[u].size() == 1 && stops[v].size() == 1;
            let cost = sum.cost(if is_whole { &whole_prices } else { &part_prices });
            costs[u * width + v] = cost;
            let charge = if v < width - 1 { limits.penalty + own[v - 1] } else { 0.0 };
            forward[v] = forward[v].min(forward[u] + cost + charge);
        }
        *work += width - u;
    }
    let mut backward = vec![f64::INFINITY; width];
    backward[width - 1] = 0.0;
    for u in (0..width - 1).rev() {
        for v in u + 1..width {
            let charge = if v < width - 1 { limits.penalty + own[v - 1] } else { 0.0 };
            backward[u] = backward[u].min(costs[u * width + v] + charge + backward[v]);
        }
    }
    let through = (1..=count).map(|v| forward[v] + backward[v]).collect();
    Chains { through, least: forward[width - 1] }
}
