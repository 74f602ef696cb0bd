//! Sorting.

/// Bits of a digit: eight digits make a number.
const DIGIT: u32 = 8;
const BUCKETS: usize = 1 << DIGIT;
const DIGITS: usize = 64_usize.div_ceil(DIGIT as usize);
/// Fewer values are sorted by comparison.
const FEWEST: usize = 1 << 12;

/// Bits that ascend as `f64::total_cmp` orders the values.
pub(crate) const fn key_of(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[expect(clippy::cast_possible_truncation, reason = "a digit has few bits")]
const fn digit_of(key: u64, digit: usize) -> usize {
    (key >> (digit as u32 * DIGIT)) as usize % BUCKETS
}

/// Gives the values in ascending order, by `f64::total_cmp`.
///
/// Many values are distributed by one digit after the other, the last one first, and digits in which all
/// agree are passed over: the time grows as their number.
#[must_use]
pub fn ascending(values: &[f64]) -> Vec<f64> {
    let mut found = values.to_vec();
    if values.len() < FEWEST {
        found.sort_unstable_by(f64::total_cmp);
        return found;
    }
    let mut counts = vec![[0_usize; BUCKETS]; DIGITS];
    for value in &found {
        let key = key_of(*value);
        for (digit, buckets) in counts.iter_mut().enumerate() {
            buckets[digit_of(key, digit)] += 1;
        }
    }
    let mut spare = vec![0.0; found.len()];
    for (digit, buckets) in counts.iter_mut().enumerate() {
        if buckets.contains(&found.len()) {
            continue;
        }
        let mut begin = 0;
        for bucket in buckets.iter_mut() {
            begin += std::mem::replace(bucket, begin);
        }
        for value in &found {
            let place = &mut buckets[digit_of(key_of(*value), digit)];
            spare[*place] = *value;
            *place += 1;
        }
        std::mem::swap(&mut found, &mut spare);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{FEWEST, ascending};

    /// Numbers of all magnitudes and both signs, from a generator of Lehmer.
    fn many(count: usize) -> Vec<f64> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(state)
        };
        let mut found: Vec<f64> =
            std::iter::repeat_with(&mut next).filter(|value| value.is_finite()).take(count).collect();
        found.extend([0.0, -0.0, f64::MAX, f64::MIN, 5e-324, 1.0, 1.0]);
        found
    }

    #[test]
    fn sorts_as_a_comparison_does() {
        for count in [0, 1, 100, FEWEST - 8, FEWEST, 3 * FEWEST] {
            let values = many(count);
            let mut expected = values.clone();
            expected.sort_unstable_by(f64::total_cmp);
            let same =
                ascending(&values).iter().zip(&expected).all(|(one, other)| one.to_bits() == other.to_bits());
            assert!(same, "{count}");
        }
        assert_eq!(ascending(&vec![7.5; 2 * FEWEST]), vec![7.5; 2 * FEWEST]);
    }
}
