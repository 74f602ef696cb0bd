//! Centring, the normal equations, and residuals.

use crate::double::Double;
use crate::linear::Intercept;
use crate::sample::real;

/// Columns and response with a rounded mean taken off (nothing off without intercept).
pub(super) struct Centred {
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) response: Vec<f64>,
    pub(super) column_shifts: Vec<f64>,
    pub(super) response_shift: f64,
    pub(super) intercept: Intercept,
}

impl Centred {
    pub(super) fn new(columns: &[&[f64]], response: &[f64], intercept: Intercept) -> Self {
        let shift = |values: &[f64]| match intercept {
            Intercept::Fitted => rounded_mean(values),
            Intercept::Zero => 0.0,
        };
        let moved = |values: &[f64], by: f64| -> Vec<f64> { values.iter().map(|value| value - by).collect() };
        let column_shifts: Vec<f64> = columns.iter().map(|column| shift(column)).collect();
        let response_shift = shift(response);
        Self {
            columns: columns.iter().zip(&column_shifts).map(|(column, &by)| moved(column, by)).collect(),
            response: moved(response, response_shift),
            column_shifts,
            response_shift,
            intercept,
        }
    }

    /// Sum of products around the exact means (around zero without intercept).
    fn product(&self, a: &[f64], b: &[f64], sums: (Double, Double)) -> Double {
        let raw = dot(a, b, self.is_simple());
        match self.intercept {
            Intercept::Fitted => raw.minus(sums.0.times(sums.1).over(Double::of(real(a.len())))),
            Intercept::Zero => raw,
        }
    }

    /// One well-scaled column: double precision in blocks suffices, and is several times faster.
    fn is_simple(&self) -> bool {
        self.columns.len() <= 1
    }
}

/// The mean on a grid of 2^-20 of the spread: data with few digits lose nothing when it is taken off.
fn rounded_mean(values: &[f64]) -> f64 {
    const EXPONENT: u64 = 0x7FF0_0000_0000_0000;
    let mean = values.iter().map(|value| value / real(values.len())).sum::<f64>();
    let spread = values.iter().fold(0.0_f64, |most, value| most.max((value - mean).abs()));
    let grid = f64::from_bits(spread.to_bits() & EXPONENT) / 1_048_576.0;
    let steps = mean / grid;
    if steps.abs() < 4_503_599_627_370_496.0 { steps.round() * grid } else { mean }
}

/// Values per block that are summed in double precision before they join the long sum.
const BLOCK: usize = 64;

fn dot(a: &[f64], b: &[f64], is_simple: bool) -> Double {
    let mut sum = Double::ZERO;
    if is_simple {
        for (left, right) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            sum = sum.plus(Double::of(left.iter().zip(right).map(|(x, y)| x * y).sum()));
        }
        return sum;
    }
    for (&x, &y) in a.iter().zip(b) {
        sum = sum.plus(Double::product_of(x, y));
    }
    sum
}

fn total(values: &[f64]) -> Double {
    values.iter().fold(Double::ZERO, |sum, &value| sum.plus(Double::of(value)))
}

/// The solved normal equations.
pub(super) struct Solution {
    /// Columns that are estimated, in their order.
    pub(super) kept: Vec<usize>,
    /// Mean of each kept column after the shift.
    pub(super) means: Vec<f64>,
    /// Lower Cholesky factor of the products of kept columns, row by row.
    pub(super) factor: Vec<Vec<f64>>,
    slopes: Vec<Double>,
    constant: Double,
    /// Sum of squares that the columns explain.
    pub(super) explained: Double,
}

impl Solution {
    pub(super) fn new(centred: &Centred) -> Self {
        let count = Double::of(real(centred.response.len()));
        let sums: Vec<Double> = centred.columns.iter().map(|column| total(column)).collect();
        let response_sum = total(&centred.response);
        let (kept, factor) = decompose(centred, &sums);
        let sides: Vec<Double> = kept
            .iter()
            .map(|&j| centred.product(&centred.columns[j], &centred.response, (sums[j], response_sum)))
            .collect();
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
        }
    }

    pub(super) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// Coefficients in the user's units; not a number where a column was left out.
    pub(super) fn coefficients(&self, centred: &Centred) -> Vec<f64> {
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

    pub(super) fn residuals(&self, centred: &Centred) -> (Vec<f64>, Double) {
        if centred.is_simple() {
            return self.plain_residuals(centred);
        }
        let mut sum = Double::ZERO;
        let residuals = (0..centred.response.len())
            .map(|i| {
                let mut rest = Double::of(centred.response[i]).minus(self.constant);
                for (&column, &slope) in self.kept.iter().zip(&self.slopes) {
                    rest = rest.minus(slope.times(Double::of(centred.columns[column][i])));
                }
                sum = sum.plus(rest.times(rest));
                rest.rounded()
            })
            .collect();
        (residuals, sum)
    }

    fn plain_residuals(&self, centred: &Centred) -> (Vec<f64>, Double) {
        let constant = self.constant.rounded();
        let slope = self.slopes.first().map_or(0.0, |slope| slope.rounded());
        let residuals: Vec<f64> = match self.kept.first() {
            None => centred.response.iter().map(|y| y - constant).collect(),
            Some(&column) => centred
                .response
                .iter()
                .zip(&centred.columns[column])
                .map(|(y, x)| y - constant - slope * x)
                .collect(),
        };
        let sum = dot(&residuals, &residuals, true);
        (residuals, sum)
    }

    /// Kept columns of one observation around their means.
    pub(super) fn row(&self, centred: &Centred, observation: usize, out: &mut [f64]) {
        for ((slot, &column), mean) in out.iter_mut().zip(&self.kept).zip(&self.means) {
            *slot = centred.columns[column][observation] - mean;
        }
    }
}

/// Cholesky factor row by row; a column whose rest is noise of the arithmetic is left out, as R leaves out aliased columns.
fn decompose(centred: &Centred, sums: &[Double]) -> (Vec<usize>, Vec<Vec<Double>>) {
    // Products carry about 32 digits (16 for a single column); a third or less of them must remain.
    let noise = if centred.is_simple() { 1e-13 } else { 1e-24 };
    let mut kept: Vec<usize> = Vec::new();
    let mut factor: Vec<Vec<Double>> = Vec::new();
    for (j, column) in centred.columns.iter().enumerate() {
        let mut row: Vec<Double> = Vec::with_capacity(kept.len() + 1);
        for (position, &other) in kept.iter().enumerate() {
            let mut rest = centred.product(column, &centred.columns[other], (sums[j], sums[other]));
            for (&left, &right) in row.iter().zip(&factor[position]) {
                rest = rest.minus(left.times(right));
            }
            row.push(rest.over(factor[position][position]));
        }
        let own = centred.product(column, column, (sums[j], sums[j]));
        let rest = row.iter().fold(own, |rest, &each| rest.minus(each.times(each)));
        let largest = column.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        if rest.rounded() > noise * real(column.len()) * largest * largest {
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
