//! The sums that the normal equations are made of.

use std::ops::Range;

use crate::double::Double;
use crate::linear::centred::{Centred, Intercept};
use crate::linear::parts::{BLOCK, Lanes, by_lane, over_parts};
use crate::sample::real;

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
    /// Adds them up.
    pub(super) fn of(centred: &Centred<'_>) -> Self {
        if centred.is_simple() {
            return Self::of_one(centred);
        }
        let width = centred.columns.len();
        let column = |j: usize| move |i: usize| centred.at(j, i);
        let response = |i: usize| centred.response_at(i);
        let count = centred.count();
        Self {
            columns: (0..width).map(|j| total(count, column(j))).collect(),
            response: total(count, response),
            squares: (0..width)
                .map(|j| (0..=j).map(|k| dot(count, column(j), column(k))).collect())
                .collect(),
            sides: (0..width).map(|j| dot(count, column(j), response)).collect(),
        }
    }

    /// The same of one column or none, in parts.
    fn of_one(centred: &Centred<'_>) -> Self {
        let parts = over_parts(centred.count(), |range| part_sums(centred, range));
        let [x, y, square, side] = parts.into_iter().fold([Double::ZERO; 4], plus);
        let has_column = !centred.columns.is_empty();
        let own = |value: Double| if has_column { vec![value] } else { Vec::new() };
        Self {
            columns: own(x),
            response: y,
            squares: if has_column { vec![vec![square]] } else { Vec::new() },
            sides: own(side),
        }
    }

    /// Moves products to the exact means; nothing is moved without intercept.
    pub(super) fn around_means(mut self, centred: &Centred<'_>) -> Self {
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

#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn part_sums(centred: &Centred<'_>, range: Range<usize>) -> [Double; 4] {
    let (x, x_shift) = match centred.columns {
        [] => (centred.response, 0.0),
        [column, ..] => (*column, centred.column_shifts[0]),
    };
    let (y, y_shift) = (centred.response, centred.response_shift);
    let mut all = [Double::ZERO; 4];
    for start in range.clone().step_by(BLOCK) {
        let mut block = [Lanes::default(); 4];
        let part = start..range.end.min(start + BLOCK);
        by_lane(&x[part.clone()], &y[part], |lane, x, y| {
            let (x, y) = (x - x_shift, y - y_shift);
            for (lanes, value) in block.iter_mut().zip([x, y, x * x, x * y]) {
                lanes.add(lane, value);
            }
        });
        all = plus(all, block.map(|lanes| Double::of(lanes.sum())));
    }
    all
}

fn plus<const N: usize>(mut all: [Double; N], part: [Double; N]) -> [Double; N] {
    for (total, each) in all.iter_mut().zip(part) {
        *total = total.plus(each);
    }
    all
}

fn dot(count: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> Double {
    (0..count).fold(Double::ZERO, |sum, i| sum.plus(Double::product_of(a(i), b(i))))
}

fn total(count: usize, value: impl Fn(usize) -> f64) -> Double {
    (0..count).fold(Double::ZERO, |sum, i| sum.plus(Double::of(value(i))))
}
