//! Centring, the normal equations, and residuals.

use crate::double::Double;
use crate::error::StatsError;
use crate::linear::{Intercept, single};
use crate::sample::{check_values, real};

/// Columns and response, seen with a rounded mean taken off (nothing off without intercept).
pub(super) struct Centred<'a> {
    pub(super) columns: &'a [&'a [f64]],
    pub(super) response: &'a [f64],
    pub(super) column_shifts: Vec<f64>,
    pub(super) response_shift: f64,
    /// Largest distance from the shift, by column.
    largest: Vec<f64>,
    pub(super) intercept: Intercept,
}

impl<'a> Centred<'a> {
    pub(super) fn new(
        columns: &'a [&'a [f64]],
        response: &'a [f64],
        intercept: Intercept,
    ) -> Result<Self, StatsError> {
        let extents = columns.iter().map(|column| Extent::of(column)).collect::<Result<Vec<_>, _>>()?;
        let shift = |extent: &Extent| match intercept {
            Intercept::Fitted => extent.rounded_mean(),
            Intercept::Zero => 0.0,
        };
        let column_shifts: Vec<f64> = extents.iter().map(shift).collect();
        let largest = extents.iter().zip(&column_shifts).map(|(extent, by)| extent.largest(*by)).collect();
        let response_shift = shift(&Extent::of(response)?);
        Ok(Self { columns, response, column_shifts, response_shift, largest, intercept })
    }

    pub(super) fn count(&self) -> usize {
        self.response.len()
    }

    /// 1 with an intercept.
    pub(super) fn constants(&self) -> usize {
        usize::from(self.intercept == Intercept::Fitted)
    }

    pub(super) fn at(&self, column: usize, observation: usize) -> f64 {
        self.columns[column][observation] - self.column_shifts[column]
    }

    fn response_at(&self, observation: usize) -> f64 {
        self.response[observation] - self.response_shift
    }

    /// One well-scaled column: double precision in blocks suffices, and is several times faster.
    pub(super) fn is_simple(&self) -> bool {
        self.columns.len() <= 1
    }

    fn sums(&self) -> Sums {
        if self.is_simple() {
            return single::sums(self);
        }
        let width = self.columns.len();
        let column = |j: usize| move |i: usize| self.at(j, i);
        let response = |i: usize| self.response_at(i);
        let count = self.count();
        Sums {
            columns: (0..width).map(|j| total(count, column(j))).collect(),
            response: total(count, response),
            squares: (0..width)
                .map(|j| (0..=j).map(|k| dot(count, column(j), column(k))).collect())
                .collect(),
            sides: (0..width).map(|j| dot(count, column(j), response)).collect(),
        }
    }
}

/// Sums over the observations of shifted values and of their products.
pub(super) struct Sums {
    pub(super) columns: Vec<Double>,
    pub(super) response: Double,
    /// Of columns by columns up to themselves.
    pub(super) squares: Vec<Vec<Double>>,
    /// Of columns by the response.
    pub(super) sides: Vec<Double>,
}

impl Sums {
    /// Moves products to the exact means; nothing is moved without intercept.
    fn around_means(mut self, centred: &Centred<'_>) -> Self {
        if centred.intercept == Intercept::Zero {
            return self;
        }
        let count = Double::of(real(centred.count()));
        for j in 0..self.columns.len() {
            for k in 0..=j {
                self.squares[j][k] =
                    self.squares[j][k].minus(self.columns[j].times(self.columns[k]).over(count));
            }
            self.sides[j] = self.sides[j].minus(self.columns[j].times(self.response).over(count));
        }
        self
    }
}

/// What one reading of a column says.
struct Extent {
    mean: f64,
    lowest: f64,
    highest: f64,
}

impl Extent {
    fn of(values: &[f64]) -> Result<Self, StatsError> {
        let (sum, lowest, highest) = single::extent(values);
        if !(lowest.is_finite() && highest.is_finite() && sum.is_finite()) {
            check_values(values, 1)?;
        }
        let count = real(values.len());
        // The sum of huge values may overflow where their mean does not.
        let mean = if sum.is_finite() { sum / count } else { values.iter().map(|value| value / count).sum() };
        Ok(Self { mean, lowest, highest })
    }

    fn largest(&self, shift: f64) -> f64 {
        (self.highest - shift).abs().max((self.lowest - shift).abs())
    }

    /// The mean on a grid of 2^-20 of the spread: data with few digits lose nothing when it is taken off.
    fn rounded_mean(&self) -> f64 {
        const EXPONENT: u64 = 0x7FF0_0000_0000_0000;
        let spread = self.largest(self.mean);
        let grid = f64::from_bits(spread.to_bits() & EXPONENT) / 1_048_576.0;
        let steps = self.mean / grid;
        if steps.abs() < 4_503_599_627_370_496.0 { steps.round() * grid } else { self.mean }
    }
}

fn dot(count: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> Double {
    (0..count).fold(Double::ZERO, |sum, i| sum.plus(Double::product_of(a(i), b(i))))
}

fn total(count: usize, value: impl Fn(usize) -> f64) -> Double {
    (0..count).fold(Double::ZERO, |sum, i| sum.plus(Double::of(value(i))))
}

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
            centred.sums().around_means(centred);
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
