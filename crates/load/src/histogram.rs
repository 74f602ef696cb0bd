//! A histogram of times with a bounded relative error.
//!
//! Log-linear, as HDR histograms are: each power of two is split into 128 buckets of equal width, times below
//! 256 ns have a bucket each. A percentile is the upper end of its bucket, so it is never below the exact
//! one and at most 1/128 (0.8 %) above it; count, mean, smallest and largest time are exact.

/// SOURCE: own choice: 2^7 buckets per power of two.
const PRECISION_BITS: u32 = 7;
const HALF: u64 = 1 << PRECISION_BITS;

/// Counts of times [ns], up to 2^64 - 1.
///
/// # Examples
///
/// ```
/// use steelyard_load::Histogram;
///
/// let times: Histogram = (1..=100).map(|ms| ms * 1_000_000).collect();
/// assert_eq!(times.count(), 100);
/// assert_eq!(times.mean_ns(), 50_500_000.0);
/// let p99 = times.percentile_ns(99.0);
/// assert!((99_000_000..99_780_000).contains(&p99));
/// assert_eq!(times.percentile_ns(100.0), 100_000_000);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    largest_ns: u64,
}

fn bucket(time_ns: u64) -> usize {
    let shift = (u64::BITS - time_ns.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    let place = u64::from(shift) * HALF + (time_ns >> shift);
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// Largest time of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * HALF {
        return bucket;
    }
    let shift = bucket / HALF - 1;
    let within = bucket - shift * HALF;
    ((within + 1) << shift).wrapping_sub(1)
}

impl Histogram {
    /// Adds a time.
    pub fn add(&mut self, time_ns: u64) {
        let place = bucket(time_ns);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.sum_ns += u128::from(time_ns);
        self.largest_ns = self.largest_ns.max(time_ns);
    }

    /// How many times were added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mean [ns]; 0 of nothing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean of times; 53 bits suffice")]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The smallest time that at least `percentile` percent of all times do not exceed [ns]; 0 of nothing.
    ///
    /// At most 1/128 above the exact one, never below it.
    #[must_use]
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count, rounded up"
        )]
        let wanted = ((percentile / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_ns(place).min(self.largest_ns);
            }
        }
        self.largest_ns
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(times_ns: T) -> Self {
        let mut histogram = Self::default();
        for time_ns in times_ns {
            histogram.add(time_ns);
        }
        histogram
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks of short samples"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_without_gap() {
        let mut last = None;
        for place in 0..bucket(u64::MAX) {
            let upper = upper_ns(place);
            assert_eq!(bucket(upper), place);
            assert_eq!(bucket(upper + 1), place + 1);
            assert!(last < Some(upper));
            last = Some(upper);
        }
        assert_eq!(upper_ns(bucket(u64::MAX)), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_its_stated_error(
            mut times in prop::collection::vec(0_u64..1 << 40, 1..300),
            percentile in 0.0_f64..100.0,
        ) {
            let histogram: Histogram = times.iter().copied().collect();
            times.sort_unstable();
            let rank = ((percentile / 100.0 * times.len() as f64).ceil() as usize).max(1);
            let exact = times[rank - 1];
            let found = histogram.percentile_ns(percentile);
            prop_assert!(found >= exact);
            prop_assert!(found <= exact + exact / 128, "{found} {exact}");
            prop_assert_eq!(histogram.percentile_ns(100.0), times[times.len() - 1]);
        }
    }
}
