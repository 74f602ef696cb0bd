//! Moments and quantiles of very many whole numbers, in memory that does not grow with their number.
//!
//! One pass ([`Tally`]) gives number, sum, squares, smallest and largest value exactly, and counts the values
//! in buckets that are at most a 1024th of their value wide. A second pass ([`Ranks`]) counts, value by value,
//! only in the buckets in which the wanted order statistics lie: these are exact, too.

use std::collections::BTreeMap;

use crate::StatsError;

/// Values are below this: 2^48 ns are 3.2 days, and sums of squares of 2^31 of them fit.
pub const TALLY_LIMIT: i64 = 1 << 48;

/// Below this every value has its bucket.
const SINGLE: u64 = 1 << 11;
/// Buckets of each power of two above.
const PER_OCTAVE: u64 = SINGLE / 2;
/// SOURCE: own choice; up to 512 KiB for one bucket. Wider ones are of calls that take 0.1 s or longer, so
/// that there are few.
const WIDEST_ARRAY: u64 = 1 << 16;

fn bucket_of(value: u64) -> usize {
    let index = if value < SINGLE {
        value
    } else {
        let shift = u64::from(value.ilog2()) - 10;
        SINGLE + (shift - 1) * PER_OCTAVE + (value >> shift) - PER_OCTAVE
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// First value of a bucket, and how many values it holds.
fn range_of(bucket: usize) -> (u64, u64) {
    let index = bucket as u64;
    if index < SINGLE {
        return (index, 1);
    }
    let shift = (index - SINGLE) / PER_OCTAVE + 1;
    ((PER_OCTAVE + (index - SINGLE) % PER_OCTAVE) << shift, 1 << shift)
}

/// What one pass over values gives.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    count: u64,
    sum: u128,
    squares: u128,
    smallest: u64,
    largest: u64,
    buckets: Vec<u64>,
}

impl Tally {
    /// Takes values.
    ///
    /// # Errors
    ///
    /// [`StatsError::OutOfRange`] for a value that is negative or not below [`TALLY_LIMIT`].
    pub fn add(&mut self, values: &[i64]) -> Result<(), StatsError> {
        if let Some(wrong) = values.iter().find(|value| !(0..TALLY_LIMIT).contains(*value)) {
            return Err(StatsError::OutOfRange { value: *wrong, limit: TALLY_LIMIT });
        }
        let (mut smallest, mut largest) =
            (if self.count == 0 { u64::MAX } else { self.smallest }, self.largest);
        for value in values {
            let value = value.unsigned_abs();
            smallest = smallest.min(value);
            largest = largest.max(value);
            self.sum += u128::from(value);
            self.squares += u128::from(value) * u128::from(value);
            let bucket = bucket_of(value);
            if bucket >= self.buckets.len() {
                self.buckets.resize(bucket + 1, 0);
            }
            self.buckets[bucket] += 1;
        }
        self.count += values.len() as u64;
        if self.count > 0 {
            (self.smallest, self.largest) = (smallest, largest);
        }
        Ok(())
    }

    /// Takes what another pass has taken.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.smallest = if self.count == 0 { other.smallest } else { self.smallest.min(other.smallest) };
        self.largest = self.largest.max(other.largest);
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += others;
        }
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest and largest value; `None` without values.
    #[must_use]
    pub fn extremes(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.smallest, self.largest))
    }

    /// The mean, rounded once; not a number without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let whole = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        let rest = self.sum - whole * u128::from(self.count);
        as_f64(whole) + as_f64(rest) / as_f64(u128::from(self.count))
    }

    /// The standard deviation with n - 1; not a number below two values. Sums are exact: nothing cancels.
    #[must_use]
    pub fn standard_deviation(&self) -> f64 {
        if self.count < 2 {
            return f64::NAN;
        }
        let count = u128::from(self.count);
        let centre = self.sum / count;
        let rest = self.sum - centre * count;
        // sum (x - c)^2 = sum x^2 - c (sum x + sum (x - c)), and every term fits below 2^127.
        let around = self.squares - centre * (self.sum + rest);
        let corrected = as_f64(around) - as_f64(rest) * (as_f64(rest) / as_f64(count));
        (corrected.max(0.0) / as_f64(count - 1)).sqrt()
    }

    /// Prepares the second pass, for order statistics by rank from 0 on. Ranks beyond the last are left out.
    #[must_use]
    pub fn ranks(&self, wanted: &[u64]) -> Ranks {
        let mut sorted: Vec<u64> = wanted.iter().copied().filter(|rank| *rank < self.count).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut windows: Vec<Window> = Vec::new();
        let mut slots = vec![u32::MAX; self.buckets.len()];
        let (mut before, mut next) = (0, 0);
        for (bucket, count) in self.buckets.iter().enumerate() {
            let end = sorted.partition_point(|rank| *rank < before + count);
            if end > next {
                slots[bucket] = u32::try_from(windows.len()).unwrap_or(u32::MAX);
                windows.push(Window::new(bucket, before));
                next = end;
            }
            before += count;
        }
        Ranks { wanted: sorted, windows, slots }
    }
}

fn as_f64(value: u128) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "rounded once, as a mean must be")]
    let value = value as f64;
    value
}

/// Counts of every single value of a bucket.
#[derive(Debug, Clone)]
struct Window {
    first: u64,
    before: u64,
    counts: Counts,
}

#[derive(Debug, Clone)]
enum Counts {
    Each(Vec<u64>),
    Found(BTreeMap<u64, u64>),
}

impl Window {
    fn new(bucket: usize, before: u64) -> Self {
        let (first, width) = range_of(bucket);
        let counts = match usize::try_from(width) {
            Ok(length) if width <= WIDEST_ARRAY => Counts::Each(vec![0; length]),
            _ => Counts::Found(BTreeMap::new()),
        };
        Self { first, before, counts }
    }

    fn add(&mut self, value: u64) {
        let offset = value - self.first;
        match &mut self.counts {
            Counts::Each(counts) => {
                if let Some(count) = usize::try_from(offset).ok().and_then(|offset| counts.get_mut(offset)) {
                    *count += 1;
                }
            }
            Counts::Found(counts) => *counts.entry(offset).or_insert(0) += 1,
        }
    }

    /// The value of a rank, if it was counted here.
    fn value(&self, rank: u64) -> Option<u64> {
        let mut rest = rank.checked_sub(self.before)?;
        let mut passed = |count: u64| {
            let is_passed = rest >= count;
            rest = rest.wrapping_sub(if is_passed { count } else { 0 });
            is_passed
        };
        let offset = match &self.counts {
            Counts::Each(counts) => {
                counts.iter().position(|count| !passed(*count)).map(|offset| offset as u64)
            }
            Counts::Found(counts) => {
                counts.iter().find(|(_, count)| !passed(**count)).map(|(offset, _)| *offset)
            }
        };
        offset.map(|offset| self.first + offset)
    }
}

/// The second pass: exact order statistics.
#[derive(Debug, Clone)]
pub struct Ranks {
    wanted: Vec<u64>,
    windows: Vec<Window>,
    slots: Vec<u32>,
}

impl Ranks {
    /// Takes the values of the first pass again, in any order.
    pub fn add(&mut self, values: &[i64]) {
        for value in values {
            let value = value.unsigned_abs();
            let slot = self.slots.get(bucket_of(value)).copied().unwrap_or(u32::MAX);
            if let Some(window) = usize::try_from(slot).ok().and_then(|slot| self.windows.get_mut(slot)) {
                window.add(value);
            }
        }
    }

    /// The wanted ranks, ascending, with their values. Those that did not come again are left out.
    #[must_use]
    pub fn values(&self) -> Vec<(u64, u64)> {
        let found = |rank: &u64| {
            let window = self.windows.iter().rev().find(|window| window.before <= *rank)?;
            Some((*rank, window.value(*rank)?))
        };
        self.wanted.iter().filter_map(found).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(values: &[i64]) -> Tally {
        let mut tally = Tally::default();
        tally.add(values).unwrap();
        tally
    }

    #[test]
    fn buckets_are_narrow_and_leave_no_gap() {
        let mut expected = 0;
        for bucket in 0..40_000 {
            let (first, width) = range_of(bucket);
            assert_eq!(first, expected);
            assert!(width == 1 || width * 1024 <= first, "{bucket}");
            assert_eq!((bucket_of(first), bucket_of(first + width - 1)), (bucket, bucket));
            expected = first + width;
        }
        assert!(expected >= TALLY_LIMIT.unsigned_abs());
    }

    #[test]
    fn large_values_lose_no_digit() {
        let base = TALLY_LIMIT - 10;
        let tally = tally(&[base, base + 1, base + 2, base + 3]);
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let expected = base as f64 + 1.5;
        assert_eq!(tally.mean().to_bits(), expected.to_bits());
        assert!((tally.standard_deviation() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(tally.extremes(), Some((base.unsigned_abs(), base.unsigned_abs() + 3)));
    }

    #[test]
    fn values_out_of_range_are_refused_and_nothing_has_no_mean() {
        assert!(matches!(Tally::default().add(&[3, -1]), Err(StatsError::OutOfRange { value: -1, .. })));
        assert!(Tally::default().add(&[TALLY_LIMIT]).is_err());
        assert!(Tally::default().mean().is_nan() && tally(&[7]).standard_deviation().is_nan());
        assert_eq!(Tally::default().extremes(), None);
    }

    proptest! {
        #[test]
        fn order_statistics_are_those_of_a_sort(
            small in prop::collection::vec(0_i64..5000, 0..60),
            large in prop::collection::vec(0_i64..TALLY_LIMIT, 1..60),
            cut in 0_usize..60,
        ) {
            let mut values = [small, large].concat();
            let (head, rest) = values.split_at(cut.min(values.len()));
            let mut whole = tally(head);
            whole.merge(&tally(rest));
            prop_assert_eq!(whole.mean().to_bits(), tally(&values).mean().to_bits());
            let all: Vec<u64> = (0..values.len() as u64 + 3).collect();
            let mut ranks = whole.ranks(&all);
            ranks.add(rest);
            ranks.add(head);
            let found = ranks.values();
            values.sort_unstable();
            let sorted: Vec<u64> = values.iter().map(|value| value.unsigned_abs()).collect();
            prop_assert_eq!(found.iter().map(|(_, value)| *value).collect::<Vec<_>>(), sorted.clone());
            prop_assert_eq!(whole.extremes(), Some((sorted[0], sorted[sorted.len() - 1])));
        }

        #[test]
        fn moments_are_those_of_two_passes(values in prop::collection::vec(0_i64..1_000_000, 2..200)) {
            let tally = tally(&values);
            let reals: Vec<f64> = values.iter().map(|value| f64::from(i32::try_from(*value).unwrap())).collect();
            let sd = crate::standard_deviation(&reals);
            prop_assert!((tally.mean() - crate::mean(&reals)).abs() <= 1e-9);
            prop_assert!((tally.standard_deviation() - sd).abs() <= 1e-9 * (1.0 + sd));
        }
    }
}
