use std::fmt::Debug;
use std::hint::black_box;
use std::ops::{Add, Div, Mul};

use super::job::{Job, passes};
use crate::{Checksum, draw_below_power_of_two};

/// Factors per power, the `n` of `(1 + x/n)^n`.
pub(super) const FACTORS: u16 = 1024;
/// The exponents `x` are drawn from 0 to 31.
const EXPONENT_BITS: u32 = 5;

/// A floating-point format.
pub(super) trait Real:
    Copy + Debug + From<u16> + Into<f64> + Add<Output = Self> + Div<Output = Self> + Mul<Output = Self>
{
    /// Bound on the relative error of [`FACTORS`] multiplications, each off by at most half a unit
    /// in the last place, plus the rounding of the base raised to that power.
    const RELATIVE_ERROR: f64;
    /// Bit pattern, for the checksum.
    fn bits(self) -> u64;
}

impl Real for f32 {
    const RELATIVE_ERROR: f64 = 2.0 * FACTORS as f64 * f32::EPSILON as f64;
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Real for f64 {
    const RELATIVE_ERROR: f64 = 2.0 * FACTORS as f64 * f64::EPSILON;
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Approximations of the exponential function.
#[derive(Debug)]
pub(super) struct Powers<T> {
    exponents: Vec<u16>,
    operations: usize,
    results: Vec<T>,
}

impl<T: Real> Powers<T> {
    pub(super) fn new(size: usize, operations: usize, seed: u64) -> Self {
        Self {
            exponents: draw_below_power_of_two(seed, EXPONENT_BITS, size),
            operations,
            results: Vec::with_capacity(size.min(operations)),
        }
    }
}

/// `(1 + x/n)^n` by `n` successive multiplications, `n` = [`FACTORS`].
pub(super) fn power<T: Real>(exponent: u16) -> T {
    let base = T::from(1) + T::from(exponent) / T::from(FACTORS);
    let mut product = T::from(1);
    for _ in 0..FACTORS {
        product = product * base;
    }
    product
}

/// The same number by ten squarings in double precision.
fn power_by_squaring(exponent: u16) -> f64 {
    let base = 1.0 + f64::from(exponent) / f64::from(FACTORS);
    (0..FACTORS.trailing_zeros()).fold(base, |product, _| product * product)
}

impl<T: Real> Job for Powers<T> {
    fn reset(&mut self) {
        self.results.clear();
        self.results.resize(self.exponents.len().min(self.operations), T::from(0));
    }

    fn execute(&mut self) {
        for length in passes(self.exponents.len(), self.operations) {
            let exponents = black_box(&self.exponents[..length]);
            for (result, &exponent) in self.results.iter_mut().zip(exponents) {
                *result = power(exponent);
            }
            black_box(&mut self.results);
        }
    }

    fn check(&self) -> Result<Checksum, String> {
        for (&exponent, &result) in self.exponents.iter().zip(&self.results) {
            let expected = power_by_squaring(exponent);
            let result: f64 = result.into();
            // Written so that not-a-number fails.
            let close = (result - expected).abs() <= T::RELATIVE_ERROR * expected;
            if !close {
                return Err(format!("(1 + {exponent}/{FACTORS})^{FACTORS} = {result}, expected {expected}"));
            }
        }
        Ok(Checksum::of(self.results.iter().map(|result| result.bits())))
    }
}
