//! A sample cut into cells between order statistics: all that a fit needs of it.

use crate::sample::{real, whole};

/// Up to this many values every spacing is a cell of its own.
pub(super) const PLAIN: usize = 2048;

/// Spacings kept one by one at either end of a longer sample.
const ENDS: usize = 256;

/// Distinct values and the number of spacings between neighbours.
///
/// The spacings of Cheng and Amin: one between neighbouring values, one below the smallest and one above the largest. A
/// value that occurs m times counts as half a spacing on either side for each of the m, so that coarse clocks neither
/// make a spacing of nothing nor a likelihood without bound.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// Smallest value.
    pub(super) lowest: f64,
    /// Distances of the edges from the smallest value; the first is 0.
    pub(super) edges: Vec<f64>,
    /// Spacings below the first edge, between neighbours, and above the last: one more than edges.
    pub(super) weights: Vec<f64>,
}

impl Cells {
    /// Cuts an ascending sample of at least one value.
    pub(super) fn of(sorted: &[f64]) -> Self {
        let (values, ranks) = distinct(sorted);
        let kept = chosen(values.len());
        let lowest = values[0];
        let edges: Vec<f64> = kept.iter().map(|&index| values[index] - lowest).collect();
        let mut weights = Vec::with_capacity(edges.len() + 1);
        let mut before = 0.0;
        for &index in &kept {
            weights.push(ranks[index] - before);
            before = ranks[index];
        }
        weights.push(real(sorted.len()) + 1.0 - before);
        Self { lowest, edges, weights }
    }

    /// Spacings in all: values plus one.
    pub(super) fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Edges with the number of values each stands for.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let halves = self.weights.windows(2).map(|pair| 0.5 * (pair[0] + pair[1]));
        self.edges.iter().copied().zip(halves)
    }

    /// Distance of the middle value from the smallest.
    pub(super) fn middle(&self) -> f64 {
        let half = 0.5 * self.total();
        let mut sum = 0.0;
        for (edge, weight) in self.edges.iter().zip(&self.weights) {
            sum += weight;
            if sum >= half {
                return *edge;
            }
        }
        self.range()
    }

    pub(super) fn range(&self) -> f64 {
        self.edges.last().copied().unwrap_or(0.0)
    }
}

/// Values that differ by more than rounding, with their middle ranks.
fn distinct(sorted: &[f64]) -> (Vec<f64>, Vec<f64>) {
    // Differences of distribution functions keep five digits down to such a step.
    const SAME: f64 = 1e-11;
    let quarter = sorted[sorted.len() * 3 / 4] - sorted[sorted.len() / 4];
    let mut values: Vec<f64> = Vec::new();
    let mut ranks: Vec<f64> = Vec::new();
    let mut from = 0;
    while from < sorted.len() {
        let value = sorted[from];
        let step = SAME * value.abs().max(quarter);
        let mut to = from + 1;
        while to < sorted.len() && sorted[to] - value <= step {
            to += 1;
        }
        values.push(value);
        ranks.push(0.5 * (real(from) + real(to) + 1.0));
        from = to;
    }
    (values, ranks)
}

/// Which of `count` ascending values become edges: all of a short sample; both ends and an even grid of a long one.
fn chosen(count: usize) -> Vec<usize> {
    if count <= PLAIN {
        return (0..count).collect();
    }
    let inner = PLAIN - 2 * ENDS;
    let width = real(count - 2 * ENDS) / real(inner);
    let grid = (0..inner).map(|step| ENDS + whole(width * (real(step) + 0.5)));
    let mut found: Vec<usize> = (0..ENDS).chain(grid).chain(count - ENDS..count).collect();
    found.dedup();
    found
}

/// How many values of an ascending sample differ by more than rounding.
pub(super) fn distinct_count(sorted: &[f64]) -> usize {
    distinct(sorted).0.len()
}
