//! The normal equations, solved, and residuals.

use crate::double::Double;
use crate::linear::centred::{Centred, Intercept};
use crate::linear::sums::Sums;
use crate::sample::real;

/// The solved normal equations.
pub(super) struct Solution {
    /// Columns that are estimated, in their order.
    pub(super) kept: Vec<usize>,
    /// Mean of each kept column after the shift.
    pub(super) means: Vec<f64>,
    /// Lower Cholesky factor of the products of kept columns, row by row.
    pub(super) factor: Vec<Vec<f64>>,
    pub(super) slopes: Vec<Double>,
    pub(super) constant: Double,
    response_mean: Double,
    /// Sum of squares that the columns explain.
    pub(super) explained: Double,
}

impl Solution {
    pub(super) fn new(centred: &Centred<'_>) -> Self {
        let count = Double::of(real(centred.count()));
        let Sums { columns: sums, response: response_sum, squares, sides } =
            Sums::of(centred).around_means(centred);
        let (kept, factor) = decompose(centred, &squares);
        let sides: Vec<Double> = kept.iter().map(|&j| sides[j]).collect();
        let half = forward(&factor, &sides);
        let slopes = backward(&factor, &half);
        let explained = half.iter().fold(Double::ZERO, |sum, &each| sum.plus(each.times(each)));
        let means: Vec<Double> = kept.iter().map(|&j| sums[j].over(count)).collect();
        let constant = match centred.intercept {
            Intercept::Fitted => slopes
                .iter()
                .zip(&means)
                .fold(response_sum.over(count), |rest, (&slope, &mean)| rest.minus(slope.times(mean))),
            Intercept::Zero => Double::ZERO,
        };
        Self {
            kept,
            means: match centred.intercept {
                Intercept::Fitted => means.into_iter().map(Double::rounded).collect(),
                Intercept::Zero => vec![0.0; slopes.len()],
            },
            factor: factor.iter().map(|row| row.iter().map(|each| each.rounded()).collect()).collect(),
            slopes,
            constant,
            explained,
            response_mean: response_sum.over(count),
        }
    }

    /// Mean of the response.
    pub(super) fn response_mean(&self, centred: &Centred<'_>) -> f64 {
        self.response_mean.plus(Double::of(centred.response_shift)).rounded()
    }

    pub(super) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// Coefficients in the user's units; not a number where a column was left out.
    pub(super) fn coefficients(&self, centred: &Centred<'_>) -> Vec<f64> {
        let mut found = vec![f64::NAN; centred.columns.len()];
        let mut constant = self.constant.plus(Double::of(centred.response_shift));
        for (&column, &slope) in self.kept.iter().zip(&self.slopes) {
            found[column] = slope.rounded();
            constant = constant.minus(slope.times(Double::of(centred.column_shifts[column])));
        }
        if centred.intercept == Intercept::Fitted {
            found.insert(0, constant.rounded());
        }
        found
    }

    pub(super) fn residuals(&self, centred: &Centred<'_>) -> (Vec<f64>, Double) {
        let mut sum = Double::ZERO;
        let residuals = (0..centred.count())
            .map(|i| {
                let mut rest = Double::of(centred.response_at(i)).minus(self.constant);
                for (&column, &slope) in self.kept.iter().zip(&self.slopes) {
                    rest = rest.minus(slope.times(Double::of(centred.at(column, i))));
                }
                sum = sum.plus(rest.times(rest));
                rest.rounded()
            })
            .collect();
        (residuals, sum)
    }

    /// Kept columns of one observation around their means.
    pub(super) fn row(&self, centred: &Centred<'_>, observation: usize, out: &mut [f64]) {
        for ((slot, &column), mean) in out.iter_mut().zip(&self.kept).zip(&self.means) {
            *slot = centred.at(column, observation) - mean;
        }
    }
}

/// Cholesky factor row by row; a column whose rest is noise of the arithmetic is left out, as R leaves out aliased columns.
fn decompose(centred: &Centred<'_>, squares: &[Vec<Double>]) -> (Vec<usize>, Vec<Vec<Double>>) {
    // Products carry about 32 digits (16 for a single column); a third or less of them must remain.
    let noise = if centred.is_simple() { 1e-13 } else { 1e-24 };
    let mut kept: Vec<usize> = Vec::new();
    let mut factor: Vec<Vec<Double>> = Vec::new();
    for (j, products) in squares.iter().enumerate() {
        let mut row: Vec<Double> = Vec::with_capacity(kept.len() + 1);
        for (position, &other) in kept.iter().enumerate() {
            let mut rest = products[other];
            for (&left, &right) in row.iter().zip(&factor[position]) {
                rest = rest.minus(left.times(right));
            }
            row.push(rest.over(factor[position][position]));
        }
        let rest = row.iter().fold(products[j], |rest, &each| rest.minus(each.times(each)));
        let largest = centred.largest[j];
        if rest.rounded() > noise * real(centred.count()) * largest * largest {
            row.push(rest.root());
            kept.push(j);
            factor.push(row);
        }
    }
    (kept, factor)
}

fn forward(factor: &[Vec<Double>], sides: &[Double]) -> Vec<Double> {
    let mut found: Vec<Double> = Vec::with_capacity(sides.len());
    for (row, &side) in factor.iter().zip(sides) {
        let rest = row.iter().zip(&found).fold(side, |rest, (&l, &z)| rest.minus(l.times(z)));
        found.push(rest.over(row[row.len() - 1]));
    }
    found
}

fn backward(factor: &[Vec<Double>], half: &[Double]) -> Vec<Double> {
    let mut found = vec![Double::ZERO; half.len()];
    for j in (0..half.len()).rev() {
        let rest = (j + 1..half.len()).fold(half[j], |rest, k| rest.minus(factor[k][j].times(found[k])));
        found[j] = rest.over(factor[j][j]);
    }
    found
}
