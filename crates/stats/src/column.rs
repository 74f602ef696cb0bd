//! Values of a column that is read in parts and does not fit into memory: counted by the leading bits of their
//! order, so that a few passes find every wanted rank exactly, and counted between edges.

/// Bits that ascend as the values do; both zeros are one.
fn key_of(value: f64) -> u64 {
    crate::ascending::key_of(value + 0.0)
}

/// The value of which these are the bits.
#[must_use]
pub fn value_of_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Values whose leading bits are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leading {
    bits: u32,
    /// In ascending order.
    known: Vec<u64>,
}

impl Leading {
    /// Values that begin with one of these numbers of so many bits (0 to 64); with no bits, all values.
    #[must_use]
    pub fn new(bits: u32, mut known: Vec<u64>) -> Self {
        known.sort_unstable();
        known.dedup();
        Self { bits: bits.min(64), known }
    }

    /// Numbers that are known, without repetition.
    #[must_use]
    pub fn known(&self) -> &[u64] {
        &self.known
    }

    fn place(&self, key: u64) -> Option<usize> {
        let leading = key.checked_shr(64 - self.bits).unwrap_or(0);
        if let [only] = *self.known {
            return (only == leading).then_some(0);
        }
        let place = self.known.partition_point(|each| *each < leading);
        (self.known.get(place) == Some(&leading)).then_some(place)
    }

    /// Adds to `counts`, which has a row for each known number, how often which `digit` bits follow it.
    ///
    /// More bits than there are left are as many as there are.
    pub fn count_next(&self, values: &[f64], digit: u32, counts: &mut [i64]) {
        let digit = digit.min(64 - self.bits);
        let (shift, row) = (64 - self.bits - digit, 1_usize << digit);
        let mask = u64::MAX.checked_shr(64 - digit).unwrap_or(0);
        for value in values {
            let key = key_of(*value);
            let Some(place) = self.place(key) else { continue };
            let following = usize::try_from(key.checked_shr(shift).unwrap_or(0) & mask).unwrap_or(0);
            if let Some(count) = counts.get_mut(place * row + following) {
                *count += 1;
            }
        }
    }

    /// Gives those of the values that begin so, in their order.
    #[must_use]
    pub fn among(&self, values: &[f64]) -> Vec<f64> {
        values.iter().copied().filter(|value| self.place(key_of(*value)).is_some()).collect()
    }
}

/// Adds to `counts` how many values lie in each bin; the last one has its right edge. Others are in none.
///
/// Edges ascend; equally wide bins are found at once.
pub fn count_between(values: &[f64], edges: &[f64], counts: &mut [i64]) {
    let (Some(&first), Some(&last)) = (edges.first(), edges.last()) else { return };
    let bins = (edges.len() - 1).min(counts.len());
    let per_value = crate::sample::real(bins) / (last - first);
    for &value in values.iter().filter(|value| **value >= first && **value <= last) {
        // Rounding, and a width that is not the same, are mended by a look at the edges.
        let mut bin = crate::sample::whole((value - first) * per_value).min(bins.saturating_sub(1));
        while bin > 0 && value < edges[bin] {
            bin -= 1;
        }
        while bin + 1 < bins && value >= edges[bin + 1] {
            bin += 1;
        }
        if let Some(count) = counts.get_mut(bin) {
            *count += 1;
        }
    }
}

/// Median of values in any order, half way between the two in the middle; not a number for none.
#[must_use]
pub fn middle(values: &[f64]) -> f64 {
    let mut copy = values.to_vec();
    if copy.is_empty() {
        return f64::NAN;
    }
    let is_even = copy.len().is_multiple_of(2);
    let place = copy.len() / 2;
    let (below, &mut upper, _) = copy.select_nth_unstable_by(place, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => f64::midpoint(lower, upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::{Leading, count_between, key_of, middle, value_of_key};

    const ASCENDING: [f64; 9] =
        [f64::MIN, -1.5, -5e-324, 0.0, 5e-324, 1.0, 1.000_000_000_000_000_2, 2.0, f64::MAX];

    #[test]
    fn keys_ascend_as_values_do_and_give_them_back() {
        assert!(ASCENDING.windows(2).all(|pair| key_of(pair[0]) < key_of(pair[1])));
        assert!(ASCENDING.iter().all(|value| value_of_key(key_of(*value)).to_bits() == value.to_bits()));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    #[test]
    fn every_value_is_counted_under_its_leading_bits() {
        let mut counts = vec![0; 1 << 12];
        Leading::new(0, vec![0]).count_next(&ASCENDING, 12, &mut counts);
        assert_eq!(counts.iter().sum::<i64>(), 9);
        // One of 12 bits holds 1 and what is just above it.
        let of_one = key_of(1.0) >> 52;
        assert_eq!(counts[usize::try_from(of_one).unwrap_or(0)], 2);
        let both = Leading::new(12, vec![of_one, key_of(0.0) >> 52, of_one]);
        assert_eq!(both.known().len(), 2);
        assert_eq!(both.among(&ASCENDING), [0.0, 5e-324, 1.0, 1.000_000_000_000_000_2]);
        let mut last = vec![0; 2];
        Leading::new(63, vec![key_of(1.0) >> 1]).count_next(&ASCENDING, 9, &mut last);
        assert_eq!(last, [1, 1]);
    }

    #[test]
    fn values_at_edges_are_in_the_bin_that_begins_there_and_the_last_has_its_end() {
        let mut counts = vec![0; 3];
        count_between(
            &[-0.1, 0.0, 0.1, 0.2, 0.3, 0.31, f64::NAN, f64::INFINITY],
            &[0.0, 0.1, 0.2, 0.3],
            &mut counts,
        );
        assert_eq!(counts, [1, 1, 2]);
        let mut uneven = vec![0; 3];
        count_between(&[0.0, 1.0, 1.5, 99.0, 100.0], &[0.0, 1.0, 2.0, 100.0], &mut uneven);
        assert_eq!(uneven, [1, 2, 2]);
        let mut wide = vec![0; 2];
        count_between(&ASCENDING, &[f64::MIN, 0.0, f64::MAX], &mut wide);
        assert_eq!(wide, [3, 6]);
    }

    #[test]
    fn the_middle_of_an_even_number_is_half_way_and_does_not_overflow() {
        assert!((middle(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-15);
        assert!((middle(&[4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-15);
        assert!(middle(&[f64::MAX, f64::MAX]).is_finite());
        assert!(middle(&[f64::MIN, f64::MAX]).abs() < 1e-15);
        assert!(middle(&[]).is_nan());
    }
}
