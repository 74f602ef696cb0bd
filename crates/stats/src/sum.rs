//! Sums that are rounded once: the order of the terms cannot change a bit.

use crate::sample::real;

/// From so many values on a sum in fixed point takes less time than a growing expansion.
const MANY: usize = 256;

/// Gives the sum, correctly rounded, of finite values whose sum is finite.
#[must_use]
pub fn exact_sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = values.into_iter();
    if values.size_hint().0 >= MANY { FixedPoint::sum(values) } else { grown_sum(values) }
}

/// Source: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997, figures 6 and 8 (growing an expansion).
fn grown_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::with_capacity(8);
    for value in values {
        let mut carry = value;
        let mut kept = 0;
        for index in 0..partials.len() {
            let (high, low) = two_sum(carry, partials[index]);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            carry = high;
        }
        partials.truncate(kept);
        partials.push(carry);
    }
    round(&partials)
}

/// Digits to the base 2^32 of a whole number of the smallest double, 2^-1074.
///
/// Source: R. M. Neal, "Fast exact summation using small and large superaccumulators", 2015, section 2.
struct FixedPoint {
    digits: [i64; DIGITS],
}

/// 2^1024 over 2^-1074 has 66 of them; one more takes the carry of the last.
const DIGITS: usize = 67;

/// Values that are added before carries: a digit grows by less than 2^53 each time.
const BEFORE_CARRY: usize = 512;

const MANTISSA: u64 = (1 << 52) - 1;

impl FixedPoint {
    fn sum(values: impl Iterator<Item = f64>) -> f64 {
        let mut whole = Self { digits: [0; DIGITS] };
        let mut room = BEFORE_CARRY;
        for value in values {
            let bits = value.to_bits();
            let exponent = (bits >> 52) & 0x7ff;
            if exponent == 0x7ff {
                return f64::NAN;
            }
            whole.add(bits, exponent);
            room -= 1;
            if room == 0 {
                whole.carry();
                room = BEFORE_CARRY;
            }
        }
        whole.carry();
        grown_sum(whole.digits.iter().enumerate().filter(|(_, digit)| **digit != 0).map(|(place, &digit)| {
            #[expect(clippy::cast_precision_loss, reason = "at most 32 bits")]
            let digit = digit as f64;
            digit * weight(place)
        }))
    }

    fn add(&mut self, bits: u64, exponent: u64) {
        let mantissa = (bits & MANTISSA) | (u64::from(exponent != 0) << 52);
        let place = exponent.max(1) - 1;
        let (digit, shift) = ((place >> 5) as usize, place & 31);
        let low = ((mantissa << shift) & 0xffff_ffff).cast_signed();
        let high = (mantissa >> (32 - shift)).cast_signed();
        // All bits of a negative number, none of another: two's complement without a branch.
        let sign = bits.cast_signed() >> 63;
        self.digits[digit] += (low ^ sign) - sign;
        self.digits[digit + 1] += (high ^ sign) - sign;
    }

    /// Brings every digit between -2^31 and 2^31, so that no digit is larger than the sum.
    fn carry(&mut self) {
        let mut carried = 0;
        for digit in &mut self.digits {
            let whole = *digit + carried;
            carried = (whole + (1 << 31)) >> 32;
            *digit = whole - (carried << 32);
        }
    }
}

/// What a digit counts, 2^(32 place - 1074).
fn weight(place: usize) -> f64 {
    let power = 32 * place as u64;
    if power < 52 { f64::from_bits(1 << power) } else { f64::from_bits((power - 51) << 52) }
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let (large, small) = if a.abs() < b.abs() { (b, a) } else { (a, b) };
    let high = large + small;
    (high, small - (high - large))
}

/// Adds non-overlapping partials of growing size, with ties broken by what lies below them.
fn round(partials: &[f64]) -> f64 {
    let Some((&last, rest)) = partials.split_last() else {
        return 0.0;
    };
    let mut high = last;
    let mut low = 0.0;
    let mut left = rest.len();
    while left > 0 {
        left -= 1;
        let before = high;
        high = before + rest[left];
        low = rest[left] - (high - before);
        if low != 0.0 {
            break;
        }
    }
    // Half-way case: the sign of the next partial decides.
    if left > 0 && (low < 0.0) == (rest[left - 1] < 0.0) && low != 0.0 && rest[left - 1] != 0.0 {
        let double = low * 2.0;
        let moved = high + double;
        if (moved - high).to_bits() == double.to_bits() {
            high = moved;
        }
    }
    high
}

/// Gives the mean by an exact sum; not a number for an empty sample.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    exact_sum(values.iter().copied()) / real(values.len())
}

/// Gives the standard deviation (divisor n - 1) by exact sums around the mean.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares = exact_sum(values.iter().map(|value| (value - centre) * (value - centre)));
    (squares / (real(values.len()) - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{exact_sum, grown_sum, mean, standard_deviation};
    use crate::stream::{open_uniform, stream};
    use proptest::prelude::*;
    use rand_core::Rng;

    #[test]
    fn cancellation_leaves_the_small_term() {
        assert_eq!(exact_sum([1e100, 1.0, -1e100]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exact_sum([0.1; 10]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exact_sum([]).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn half_way_cases_round_by_the_rest() {
        // 2^53 + 1 is half way between two doubles; the tiny last term decides.
        let base = 9_007_199_254_740_992.0;
        assert_eq!(exact_sum([base, 1.0, 1e-30]).to_bits(), (base + 2.0).to_bits());
        assert_eq!(exact_sum([base, 1.0, -1e-30]).to_bits(), base.to_bits());
    }

    #[test]
    fn many_values_are_summed_as_few_are() {
        let extremes = [f64::MIN_POSITIVE, 5e-324, -5e-324, 1e300, -1e300, 1e-300, 1e16, -1.0, 0.1, 3e-310];
        let mut generator = stream(5, 0, 0);
        for scale in [0, 20, 600] {
            let mut values: Vec<f64> = (0..5000)
                .map(|_| {
                    let power =
                        i32::try_from(generator.next_u32() % (2 * scale + 1)).unwrap() - scale.cast_signed();
                    (open_uniform(&mut generator) - 0.5) * libm::exp2(f64::from(power))
                })
                .collect();
            assert_eq!(exact_sum(values.clone()).to_bits(), grown_sum(values.iter().copied()).to_bits());
            values.extend(extremes);
            assert_eq!(exact_sum(values.clone()).to_bits(), grown_sum(values.into_iter()).to_bits());
        }
        for value in extremes {
            assert_eq!(exact_sum([value; 600]).to_bits(), grown_sum([value; 600].into_iter()).to_bits());
        }
        assert!(exact_sum([f64::INFINITY; 600]).is_nan());
    }

    /// `NIST` `StRD` univariate summary statistics, data set `NumAcc4`: certified mean 10000000.2, sd 0.1.
    #[test]
    fn certified_mean_and_deviation_of_nist_numacc4() {
        let mut values = vec![10_000_000.2];
        for _ in 0..500 {
            values.extend([10_000_000.1, 10_000_000.3]);
        }
        assert!((mean(&values) - 10_000_000.2).abs() < 2e-9);
        assert!((standard_deviation(&values) - 0.1).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn order_does_not_change_a_bit(mut values in prop::collection::vec(-1e12..1e12_f64, 1..600), seed in 0_usize..50) {
            let before = exact_sum(values.iter().copied());
            let length = values.len();
            values.rotate_left(seed % length);
            values.reverse();
            prop_assert_eq!(before.to_bits(), exact_sum(values).to_bits());
        }
    }
}
