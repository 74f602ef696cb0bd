//! Exact optimal partitioning over a set of allowed positions.

use crate::segment::limits::Limits;
use crate::segment::moments::{Both, Prices};
use crate::segment::tree::Tree;

/// The best partition whose breaks lie on `positions`, ascending, strictly between 0 and the number of groups.
///
/// Gives the breaks and the total cost. Source: B. Jackson et al., "An algorithm for optimal partitioning of data on an
/// interval", 2005; costs are merged from neighbour to neighbour, so that nothing cancels.
pub(super) fn best_partition(
    tree: &Tree<'_>,
    positions: &[usize],
    limits: &Limits,
    evaluations: &mut usize,
) -> (Vec<usize>, f64) {
    let mut ends = Vec::with_capacity(positions.len() + 2);
    ends.push(0);
    ends.extend_from_slice(positions);
    ends.push(tree.count());
    let chunks: Vec<Both> = ends.windows(2).map(|pair| tree.range(pair[0], pair[1])).collect();
    let mut best = vec![f64::INFINITY; ends.len()];
    let mut from = vec![0_usize; ends.len()];
    best[0] = -limits.penalty;
    for start in 0..chunks.len() {
        if best[start].is_infinite() && start > 0 {
            continue;
        }
        let mut sum = Both::default();
        for end in start + 1..ends.len() {
            sum.join(&chunks[end - 1]);
            if ends[end] - ends[start] < limits.shortest {
                continue;
            }
            *evaluations += 1;
            let cost = best[start] + limits.penalty + sum.cost(&limits.prices);
            if cost < best[end] {
                best[end] = cost;
                from[end] = start;
            }
        }
    }
    let mut breaks = Vec::new();
    let mut end = ends.len() - 1;
    while from[end] > 0 {
        end = from[end];
        breaks.push(ends[end]);
    }
    breaks.reverse();
    (breaks, best[ends.len() - 1])
}

/// Total cost of a given partition.
pub(super) fn partition_cost(tree: &Tree<'_>, breaks: &[usize], penalty: f64, prices: &Prices) -> f64 {
    let mut total = 0.0;
    let mut start = 0;
    for &end in breaks.iter().chain([&tree.count()]) {
        total += tree.range(start, end).cost(prices);
        if end < tree.count() {
            total += penalty;
        }
        start = end;
    }
    total
}
