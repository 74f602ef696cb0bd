//! One column or none: a few passes over the data.

use std::ops::Range;

use crate::double::Double;
use crate::linear::centred::Centred;
use crate::linear::parts::{BLOCK, Extremes, Lanes, by_lane, over_parts};
use crate::linear::robust::Covariance;
use crate::linear::solve::Solution;
use crate::sample::real;

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
    pub(super) fn new(centred: &Centred<'a>, solution: &Solution) -> Self {
        let slope = solution.slopes.first();
        Self {
            x: centred.columns.first().copied().filter(|_| slope.is_some()).unwrap_or(centred.response),
            y: centred.response,
            x_shift: centred.column_shifts.first().copied().unwrap_or(0.0),
            y_shift: centred.response_shift,
            constant: solution.constant.rounded(),
            slope: slope.map_or(0.0, |slope| slope.rounded()),
            x_mean: solution.means.first().copied().unwrap_or(0.0),
            x_root: solution.factor.first().map_or(f64::INFINITY, |row| row[0]),
            base: real(centred.constants()) / real(centred.count()),
            has_constant: centred.constants() == 1,
            has_slope: slope.is_some(),
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
