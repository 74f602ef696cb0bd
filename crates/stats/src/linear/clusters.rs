//! Scores summed within clusters.

use crate::linear::centred::Centred;
use crate::linear::parts::over_parts;
use crate::linear::robust::{Clustered, fill};
use crate::linear::single::Line;
use crate::linear::solve::Solution;

/// Numbers labels from 0, in ascending order of the labels.
enum Numbers {
    /// Labels lie close together: each has its own place, also those that no observation has.
    Dense {
        first: i64,
        places: usize,
    },
    Sparse(Vec<i64>),
}

impl Numbers {
    fn of(labels: &[i64]) -> Self {
        let ends = over_parts(labels.len(), |range| span(&labels[range]));
        let (first, last) = ends.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0));
        match usize::try_from(i128::from(last) - i128::from(first)) {
            Ok(span) if span < 2 * labels.len() + 1024 => Self::Dense { first, places: span + 1 },
            _ => {
                let mut all = labels.to_vec();
                all.sort_unstable();
                all.dedup();
                Self::Sparse(all)
            }
        }
    }

    fn places(&self) -> usize {
        match self {
            Self::Dense { places, .. } => *places,
            Self::Sparse(all) => all.len(),
        }
    }

    fn of_label(&self, label: i64) -> usize {
        match self {
            // The difference is below the number of places.
            Self::Dense { first, .. } => usize::try_from(label.wrapping_sub(*first)).unwrap_or(0),
            Self::Sparse(all) => all.partition_point(|&each| each < label),
        }
    }
}

/// Smallest and largest label.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn span(labels: &[i64]) -> (i64, i64) {
    labels.iter().fold((i64::MAX, i64::MIN), |(low, high), &label| (low.min(label), high.max(label)))
}

/// Adds up what `score` writes for each observation, cluster by cluster, in the order of the data.
fn add_up(labels: &[i64], width: usize, mut score: impl FnMut(usize, &mut [f64])) -> Clustered {
    let numbers = Numbers::of(labels);
    let mut sums = vec![0.0; numbers.places() * width];
    let mut seen = vec![false; numbers.places()];
    let mut own = vec![0.0; width];
    let mut start = 0;
    // Neighbours mostly share a cluster.
    while start < labels.len() {
        let label = labels[start];
        let place = numbers.of_label(label);
        seen[place] = true;
        let sum = &mut sums[place * width..][..width];
        while start < labels.len() && labels[start] == label {
            score(start, &mut own);
            sum.iter_mut().zip(&own).for_each(|(total, each)| *total += each);
            start += 1;
        }
    }
    Clustered { sums, width, groups: seen.iter().filter(|each| **each).count() }
}

pub(super) fn of_line(line: &Line<'_>, labels: &[i64]) -> Clustered {
    let width = usize::from(line.has_constant) + usize::from(line.has_slope);
    add_up(labels, width, |i, own| {
        let (residual, q) = line.at(i);
        if line.has_constant {
            own[0] = residual;
        }
        if line.has_slope {
            own[width - 1] = q * residual;
        }
    })
}

pub(super) fn of_columns(
    centred: &Centred<'_>,
    solution: &Solution,
    residuals: &[f64],
    labels: &[i64],
) -> Clustered {
    add_up(labels, centred.constants() + solution.rank(), |i, own| {
        fill(centred, solution, i, own);
        for each in own {
            *each *= residuals[i];
        }
    })
}
