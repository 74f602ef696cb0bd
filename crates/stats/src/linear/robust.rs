//! Leverage, Cook's distance, and three covariances of the coefficients.
//!
//! Everything is computed for columns around their means, where the constant is independent of the slopes, and moved to the
//! user's parametrisation at the end.

use crate::linear::centred::Centred;
use crate::linear::solve::Solution;
use crate::sample::real;

/// Covariance of (constant at the means, slopes), symmetric, row by row; the constant is absent without intercept.
pub(super) type Covariance = Vec<Vec<f64>>;

/// Solves L z = row, in place.
fn whiten(factor: &[Vec<f64>], row: &mut [f64]) {
    for j in 0..row.len() {
        let rest = factor[j][..j].iter().zip(row.iter()).fold(row[j], |rest, (l, z)| rest - l * z);
        row[j] = rest / factor[j][j];
    }
}

/// Solves L' b = row, in place.
fn colour(factor: &[Vec<f64>], row: &mut [f64]) {
    for j in (0..row.len()).rev() {
        let rest = (j + 1..row.len()).fold(row[j], |rest, k| rest - factor[k][j] * row[k]);
        row[j] = rest / factor[j][j];
    }
}

pub(super) fn leverage(centred: &Centred<'_>, solution: &Solution) -> Vec<f64> {
    let base = real(centred.constants()) / real(centred.count());
    let mut row = vec![0.0; solution.rank()];
    (0..centred.count())
        .map(|i| {
            solution.row(centred, i, &mut row);
            whiten(&solution.factor, &mut row);
            base + row.iter().map(|z| z * z).sum::<f64>()
        })
        .collect()
}

/// Source: R. D. Cook, "Detection of Influential Observation in Linear Regression", 1977, eq. 6.
pub(super) fn cook(residuals: &[f64], leverage: &[f64], variance: f64, rank: usize) -> Vec<f64> {
    let each = |(r, h): (&f64, &f64)| {
        let room = 1.0 - h;
        r * r * h / (real(rank) * variance * room * room)
    };
    residuals.iter().zip(leverage).map(each).collect()
}

pub(super) fn times_number(form: &Covariance, number: f64) -> Covariance {
    form.iter().map(|row| row.iter().map(|each| each * number).collect()).collect()
}

/// Inverse of the products of all columns, the constant first.
pub(super) fn bread(centred: &Centred<'_>, solution: &Solution) -> Covariance {
    let first = centred.constants();
    let width = first + solution.rank();
    let mut found = vec![vec![0.0; width]; width];
    if first == 1 {
        found[0][0] = 1.0 / real(centred.count());
    }
    for j in 0..solution.rank() {
        let mut unit = vec![0.0; solution.rank()];
        unit[j] = 1.0;
        whiten(&solution.factor, &mut unit);
        colour(&solution.factor, &mut unit);
        for (k, value) in unit.into_iter().enumerate() {
            found[first + k][first + j] = value;
        }
    }
    found
}

/// Sums of squared scores for HC3.
///
/// Source: J. G. `MacKinnon`, H. White, "Some heteroskedasticity-consistent covariance matrix estimators with improved
/// finite sample properties", 1985; in the form of J. S. Long, L. H. Ervin, 2000, eq. 5.
pub(super) fn heteroskedastic(
    centred: &Centred<'_>,
    solution: &Solution,
    residuals: &[f64],
    leverage: &[f64],
) -> Covariance {
    let width = centred.constants() + solution.rank();
    let mut meat = vec![vec![0.0; width]; width];
    let mut score = vec![0.0; width];
    for (i, (residual, h)) in residuals.iter().zip(leverage).enumerate() {
        fill(centred, solution, i, &mut score);
        let weight = residual / (1.0 - h);
        for each in &mut score {
            *each *= weight;
        }
        add_square(&mut meat, &score);
    }
    meat
}

/// CR1: scores summed within clusters, times G / (G - 1) (n - 1) / (n - k).
///
/// Source: A. C. Cameron, D. L. Miller, "A Practitioner's Guide to Cluster-Robust Inference", 2015, eq. 11 and 12.
pub(super) struct Clustered {
    /// Sums of scores, one row per cluster.
    pub(super) sums: Vec<f64>,
    pub(super) width: usize,
    /// Clusters that have an observation.
    pub(super) groups: usize,
}

impl Clustered {
    pub(super) fn meat(&self, count: usize) -> Covariance {
        let mut meat = vec![vec![0.0; self.width]; self.width];
        for sum in self.sums.chunks_exact(self.width.max(1)) {
            add_square(&mut meat, sum);
        }
        let (count, groups) = (real(count), real(self.groups));
        times_number(&meat, groups / (groups - 1.0) * (count - 1.0) / (count - real(self.width)))
    }
}

/// The constant and the columns of one observation.
pub(super) fn fill(centred: &Centred<'_>, solution: &Solution, observation: usize, out: &mut [f64]) {
    let first = centred.constants();
    if first == 1 {
        out[0] = 1.0;
    }
    solution.row(centred, observation, &mut out[first..]);
}

fn add_square(sum: &mut Covariance, vector: &[f64]) {
    for (row, left) in sum.iter_mut().zip(vector) {
        for (slot, right) in row.iter_mut().zip(vector) {
            *slot += left * right;
        }
    }
}

pub(super) fn sandwich(bread: &Covariance, meat: &Covariance) -> Covariance {
    times(&times(bread, meat), bread)
}

fn times(a: &Covariance, b: &Covariance) -> Covariance {
    let cell = |row: &[f64], j: usize| row.iter().zip(b).map(|(left, right)| left * right[j]).sum();
    a.iter().map(|row| (0..row.len()).map(|j| cell(row, j)).collect()).collect()
}

/// Standard errors in the user's parametrisation: the constant there is the one at the means less slopes times means.
pub(super) fn standard_errors(
    centred: &Centred<'_>,
    solution: &Solution,
    covariance: &Covariance,
) -> Vec<f64> {
    let first = centred.constants();
    let mut found = vec![f64::NAN; centred.columns.len() + first];
    for (position, &column) in solution.kept.iter().enumerate() {
        found[first + column] = covariance[first + position][first + position].sqrt();
    }
    if first == 1 {
        let mut weights = vec![1.0];
        let means = solution.kept.iter().zip(&solution.means);
        weights.extend(means.map(|(&column, mean)| -(mean + centred.column_shifts[column])));
        let rows = covariance.iter().map(|row| row.iter().zip(&weights).map(|(c, w)| c * w).sum::<f64>());
        found[0] = rows.zip(&weights).map(|(each, weight)| each * weight).sum::<f64>().sqrt();
    }
    found
}
