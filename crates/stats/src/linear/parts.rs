//! Passes over the data in parts that do not depend on the number of threads.
//!
//! A part is added up in blocks of 64 in double precision, eight sums side by side; blocks join in 106 bits.

use std::ops::Range;

use rayon::prelude::*;

use crate::registers::Registers;

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
pub(super) struct Lanes([f64; LANES]);

impl Lanes {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    pub(super) fn add(&mut self, lane: usize, value: f64) {
        self.0[lane] += value;
    }

    pub(super) fn sum(self) -> f64 {
        let halves = [0, 1, 2, 3].map(|lane| self.0[lane] + self.0[lane + 4]);
        (halves[0] + halves[2]) + (halves[1] + halves[3])
    }
}

/// Smallest and largest number by place modulo 8.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    low: [f64; LANES],
    high: [f64; LANES],
}

impl Extremes {
    pub(super) const NONE: Self = Self { low: [f64::INFINITY; LANES], high: [f64::NEG_INFINITY; LANES] };

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    pub(super) fn add(&mut self, lane: usize, value: f64) {
        let (low, high) = (&mut self.low[lane], &mut self.high[lane]);
        *low = if value < *low { value } else { *low };
        *high = if value > *high { value } else { *high };
    }

    pub(super) fn all(self) -> (f64, f64) {
        (
            self.low.into_iter().fold(f64::INFINITY, f64::min),
            self.high.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}

/// Hands on each pair with its place modulo 8.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
pub(super) fn by_lane(x: &[f64], y: &[f64], mut take: impl FnMut(usize, f64, f64)) {
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
