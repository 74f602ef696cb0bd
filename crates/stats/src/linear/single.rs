//! One column or none: a few passes over the data, in parts that do not depend on the number of threads.
//!
//! A part is added up in blocks of 64 in double precision, eight sums side by side; blocks join in 106 bits.

use std::ops::Range;

use rayon::prelude::*;

use crate::double::Double;
use crate::linear::robust::Covariance;
use crate::linear::solve::{Centred, Solution, Sums};
use crate::registers::Registers;
use crate::sample::real;

/// Observations of one part. A constant of the method: changing it changes last digits.
const PART: usize = 1 << 14;
/// Observations that are added in double precision before they join the long sum.
pub(super) const BLOCK: usize = 64;
const LANES: usize = 8;

/// What is found in each part, in the order of the parts.
pub(super) fn over_parts<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync + Send) -> Vec<T> {
    let registers = Registers::widest();
    let part = |number: usize| {
        let first = number * PART;
        registers.compile(|| work(first..count.min(first + PART)))
    };
    let parts = count.div_ceil(PART);
    // One part is not worth waking a thread.
    if parts <= 1 { (0..parts).map(part).collect() } else { (0..parts).into_par_iter().map(part).collect() }
}

/// Adds numbers by place modulo 8.
#[derive(Clone, Copy, Default)]
struct Lanes([f64; LANES]);

impl Lanes {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn add(&mut self, lane: usize, value: f64) {
        self.0[lane] += value;
    }

    fn sum(self) -> f64 {
        let halves = [0, 1, 2, 3].map(|lane| self.0[lane] + self.0[lane + 4]);
        (halves[0] + halves[2]) + (halves[1] + halves[3])
    }
}

/// Smallest and largest number by place modulo 8.
#[derive(Clone, Copy)]
struct Extremes {
    low: [f64; LANES],
    high: [f64; LANES],
}

impl Extremes {
    const NONE: Self = Self { low: [f64::INFINITY; LANES], high: [f64::NEG_INFINITY; LANES] };

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn add(&mut self, lane: usize, value: f64) {
        let (low, high) = (&mut self.low[lane], &mut self.high[lane]);
        *low = if value < *low { value } else { *low };
        *high = if value > *high { value } else { *high };
    }

    fn all(self) -> (f64, f64) {
        (
            self.low.into_iter().fold(f64::INFINITY, f64::min),
            self.high.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}

/// Hands on each pair with its place modulo 8.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn by_lane(x: &[f64], y: &[f64], mut take: impl FnMut(usize, f64, f64)) {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            take(lane, x[lane], y[lane]);
        }
    }
    for (lane, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        take(lane, *x, *y);
    }
}

/// Sum, smallest and largest value; the extremes are not finite where a value is not.
pub(super) fn extent(values: &[f64]) -> (f64, f64, f64) {
    let parts = over_parts(values.len(), |range| part_extent(&values[range]));
    parts.into_iter().fold((0.0, f64::INFINITY, f64::NEG_INFINITY), |all, part| {
        // A part with a value that is not a number hands that on.
        (all.0 + part.0, if part.1 < all.1 || part.1.is_nan() { part.1 } else { all.1 }, all.2.max(part.2))
    })
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn part_extent(values: &[f64]) -> (f64, f64, f64) {
    let (mut sum, mut bad, mut extremes) = (Lanes::default(), Lanes::default(), Extremes::NONE);
    by_lane(values, values, |lane, value, _| {
        sum.add(lane, value);
        // 0 for a finite value, else not a number.
        bad.add(lane, value * 0.0);
        extremes.add(lane, value);
    });
    let (low, high) = extremes.all();
    (sum.sum(), low + bad.sum(), high)
}

/// Sums of the shifted column and response and of their products.
pub(super) fn sums(centred: &Centred<'_>) -> Sums {
    let line = Line::of_data(centred);
    let parts = over_parts(centred.count(), |range| line.part_sums(range));
    let [x, y, square, side] = parts.into_iter().fold([Double::ZERO; 4], plus);
    let has_column = !centred.columns.is_empty();
    let own = |value: Double| if has_column { vec![value] } else { Vec::new() };
    Sums {
        columns: own(x),
        response: y,
        squares: if has_column { vec![vec![square]] } else { Vec::new() },
        sides: own(side),
    }
}

fn plus<const N: usize>(mut all: [Double; N], part: [Double; N]) -> [Double; N] {
    for (total, each) in all.iter_mut().zip(part) {
        *total = total.plus(each);
    }
    all
}

/// A line through the data, or a constant alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The response again where no column is kept; the slope is 0 then.
    x: &'a [f64],
    y: &'a [f64],
    x_shift: f64,
    y_shift: f64,
    constant: f64,
    slope: f64,
    /// Mean of the shifted column, and root of its sum of squares around the mean.
    x_mean: f64,
    x_root: f64,
    /// 1 / n with an intercept, else 0.
    base: f64,
    pub(super) has_constant: bool,
    pub(super) has_slope: bool,
}

/// What one pass over the residuals says.
pub(super) struct Survey {
    pub(super) residual_sum: Double,
    pub(super) lowest: f64,
    pub(super) highest: f64,
    /// Sums of w^2, w^2 q and w^2 q^2, w the residual over 1 less the leverage, q the column around its mean.
    scores: [f64; 3],
    has_constant: bool,
    has_slope: bool,
}

impl Survey {
    /// Sums of squared scores for HC3, as `robust::heteroskedastic` gives them for any number of columns.
    pub(super) fn meat(&self) -> Covariance {
        let [plain, mixed, square] = self.scores;
        match (self.has_constant, self.has_slope) {
            (true, true) => vec![vec![plain, mixed], vec![mixed, square]],
            (true, false) => vec![vec![plain]],
            (false, true) => vec![vec![square]],
            (false, false) => Vec::new(),
        }
    }
}

impl<'a> Line<'a> {
    fn of_data(centred: &Centred<'a>) -> Self {
        Self {
            x: centred.columns.first().copied().unwrap_or(centred.response),
            y: centred.response,
            x_shift: centred.column_shifts.first().copied().unwrap_or(0.0),
            y_shift: centred.response_shift,
            constant: 0.0,
            slope: 0.0,
            x_mean: 0.0,
            x_root: f64::INFINITY,
            base: 0.0,
            has_constant: centred.constants() == 1,
            has_slope: false,
        }
    }

    pub(super) fn new(centred: &Centred<'a>, solution: &Solution) -> Self {
        let base = real(centred.constants()) / real(centred.count());
        let line = Self { constant: solution.constant.rounded(), base, ..Self::of_data(centred) };
        match solution.slopes.first() {
            None => Self { x: centred.response, ..line },
            Some(slope) => Self {
                slope: slope.rounded(),
                x_mean: solution.means[0],
                x_root: solution.factor[0][0],
                has_slope: true,
                ..line
            },
        }
    }

    pub(super) fn count(&self) -> usize {
        self.y.len()
    }

    /// Residual, and the column around its mean.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn pair(&self, x: f64, y: f64) -> (f64, f64) {
        let (x, y) = (x - self.x_shift, y - self.y_shift);
        (y - self.constant - self.slope * x, x - self.x_mean)
    }

    /// The same of one observation.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    pub(super) fn at(&self, observation: usize) -> (f64, f64) {
        self.pair(self.x[observation], self.y[observation])
    }

    /// Residuals of some observations.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    pub(super) fn read(&self, range: Range<usize>, out: &mut [f64]) {
        for ((slot, &x), &y) in out.iter_mut().zip(&self.x[range.clone()]).zip(&self.y[range]) {
            *slot = self.pair(x, y).0;
        }
    }

    pub(super) fn residuals(&self) -> Vec<f64> {
        let mut found = vec![0.0; self.count()];
        self.read(0..self.count(), &mut found);
        found
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn part_sums(&self, range: Range<usize>) -> [Double; 4] {
        let mut all = [Double::ZERO; 4];
        for start in range.clone().step_by(BLOCK) {
            let mut block = [Lanes::default(); 4];
            let part = start..range.end.min(start + BLOCK);
            by_lane(&self.x[part.clone()], &self.y[part], |lane, x, y| {
                let (x, y) = (x - self.x_shift, y - self.y_shift);
                for (lanes, value) in block.iter_mut().zip([x, y, x * x, x * y]) {
                    lanes.add(lane, value);
                }
            });
            all = plus(all, block.map(|lanes| Double::of(lanes.sum())));
        }
        all
    }

    /// Reads all residuals once.
    pub(super) fn survey(&self) -> Survey {
        let parts = over_parts(self.count(), |range| self.part_survey(range));
        let mut all = Survey {
            residual_sum: Double::ZERO,
            lowest: f64::INFINITY,
            highest: f64::NEG_INFINITY,
            scores: [0.0; 3],
            has_constant: self.has_constant,
            has_slope: self.has_slope,
        };
        for (residual_sum, lowest, highest, scores) in parts {
            all.residual_sum = all.residual_sum.plus(residual_sum);
            all.lowest = all.lowest.min(lowest);
            all.highest = all.highest.max(highest);
            for (total, score) in all.scores.iter_mut().zip(scores) {
                *total += score;
            }
        }
        all
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn part_survey(&self, range: Range<usize>) -> (Double, f64, f64, [f64; 3]) {
        let mut residual_sum = Double::ZERO;
        let mut extremes = Extremes::NONE;
        let mut scores = [Lanes::default(); 3];
        for start in range.clone().step_by(BLOCK) {
            let mut squares = Lanes::default();
            let part = start..range.end.min(start + BLOCK);
            by_lane(&self.x[part.clone()], &self.y[part], |lane, x, y| {
                let (r, q) = self.pair(x, y);
                squares.add(lane, r * r);
                extremes.add(lane, r);
                let z = q / self.x_root;
                let w = r / (1.0 - (self.base + z * z));
                let wq = w * q;
                for (lanes, value) in scores.iter_mut().zip([w * w, w * wq, wq * wq]) {
                    lanes.add(lane, value);
                }
            });
            residual_sum = residual_sum.plus(Double::of(squares.sum()));
        }
        let (low, high) = extremes.all();
        (residual_sum, low, high, scores.map(Lanes::sum))
    }
}
