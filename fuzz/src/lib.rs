//! Numbers as samples hold them, and as nobody expects them.

use arbitrary::{Arbitrary, Result, Unstructured};

/// A number: often small and repeated, sometimes of any bits.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub f64);

const ODD: [f64; 12] = [
    0.0,
    -0.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    1e-300,
    1e200,
    9_007_199_254_740_993.0,
];

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let kind: u8 = input.arbitrary()?;
        Ok(Self(match kind {
            0..=99 => f64::from(input.arbitrary::<i8>()?),
            100..=179 => 1.0 + f64::from(input.arbitrary::<u16>()?) / 1024.0,
            180..=199 => 1e9 + f64::from(input.arbitrary::<i8>()?),
            200..=219 => ODD[usize::from(kind) % ODD.len()],
            _ => f64::from_bits(input.arbitrary()?),
        }))
    }
}

/// The numbers themselves, at most `most`.
#[must_use]
pub fn plain(numbers: &[Number], most: usize) -> Vec<f64> {
    numbers.iter().take(most).map(|number| number.0).collect()
}

/// Whether every number is finite, and far enough from overflow that squares and their sums are too.
#[must_use]
pub fn is_tame(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite() && value.abs() < 1e100)
}

/// Probabilities are in [0, 1], or not numbers where the input is wild.
pub fn check_probability(p: f64, tame: bool) {
    assert!((0.0..=1.0).contains(&p) || (p.is_nan() && !tame), "{p} is no probability");
}
