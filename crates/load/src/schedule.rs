//! When requests are to be sent: decided by the seed alone, before the first one.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent exponential gaps: a Poisson process.
    Poisson,
    /// Equal gaps.
    Uniform,
}

impl Arrivals {
    /// Every kind with its name.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Poisson, "poisson"), (Self::Uniform, "uniform")];

    /// As in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        if self == Self::Poisson { "poisson" } else { "uniform" }
    }
}

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// After the begin [ns].
    pub offset_ns: u64,
    /// Whether it is a long request.
    pub is_long: bool,
}

/// What a schedule is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// How requests follow each other.
    pub arrivals: Arrivals,
    /// Mean rate [1/s], above 0.
    pub rate_per_s: f64,
    /// How long requests are sent [ns].
    pub duration_ns: u64,
    /// Share of long requests, 0 to 1.
    pub long_share: f64,
    /// Seed; times and kinds have a stream each, so that another share leaves the times alone.
    pub seed: u64,
}

const TIMES: u64 = 0x7374_6561_6d31;
const KINDS: u64 = 0x7374_6561_6d32;

impl Schedule {
    /// Draws the requests, in order of time.
    ///
    /// # Examples
    ///
    /// ```
    /// use steelyard_load::{Arrivals, Schedule};
    ///
    /// let schedule = Schedule {
    ///     arrivals: Arrivals::Uniform, rate_per_s: 100.0, duration_ns: 50_000_000, long_share: 0.0, seed: 1,
    /// };
    /// let times: Vec<u64> = schedule.draw().iter().map(|due| due.offset_ns).collect();
    /// assert_eq!(times, [0, 10_000_000, 20_000_000, 30_000_000, 40_000_000]);
    /// ```
    #[must_use]
    pub fn draw(&self) -> Vec<Due> {
        let mut times = generator(self.seed, TIMES);
        let mut kinds = generator(self.seed, KINDS);
        let gap_ns = 1e9 / self.rate_per_s;
        let mut due = Vec::new();
        let mut offset_ns = match self.arrivals {
            Arrivals::Poisson => gap_ns * exponential(&mut times),
            Arrivals::Uniform => 0.0,
        };
        loop {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive; a time beyond the range is cut to its end, after every schedule"
            )]
            let offset = offset_ns as u64;
            if offset >= self.duration_ns {
                return due;
            }
            due.push(Due { offset_ns: offset, is_long: uniform(&mut kinds) < self.long_share });
            offset_ns = match self.arrivals {
                Arrivals::Poisson => offset_ns + gap_ns * exponential(&mut times),
                #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
                Arrivals::Uniform => gap_ns * due.len() as f64,
            };
        }
    }
}

/// A generator of one stream of a seed.
pub(crate) fn generator(seed: u64, stream: u64) -> Pcg64 {
    let mut bytes = [0_u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&stream.to_le_bytes());
    bytes[16..24].copy_from_slice(&stream.to_le_bytes());
    let mut generator = Pcg64::from_seed(bytes);
    // The first outputs of small seeds are small: they are dropped.
    for _ in 0..8 {
        generator.next_u64();
    }
    generator
}

/// A value in [0, 1).
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn uniform(generator: &mut Pcg64) -> f64 {
    (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A value of the exponential law with mean 1.
fn exponential(generator: &mut Pcg64) -> f64 {
    -(1.0 - uniform(generator)).ln()
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "times of some seconds")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(arrivals: Arrivals, rate_per_s: f64, seed: u64) -> Schedule {
        Schedule { arrivals, rate_per_s, duration_ns: 20_000_000_000, long_share: 0.02, seed }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_spread_of_the_law() {
        let due = schedule(Arrivals::Poisson, 1000.0, 3).draw();
        let count = u32::try_from(due.len()).unwrap();
        // 20000 expected, standard deviation 141: five of them.
        assert!((19_293..20_707).contains(&count), "{count}");
        let gaps: Vec<f64> =
            due.windows(2).map(|pair| (pair[1].offset_ns - pair[0].offset_ns) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The deviation of an exponential law is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05);
        let long = due.iter().filter(|due| due.is_long).count();
        // 400 expected, standard deviation 20.
        assert!((300..500).contains(&long), "{long}");
    }

    #[test]
    fn another_share_leaves_the_times_alone() {
        let plain = schedule(Arrivals::Poisson, 500.0, 9);
        let longer = Schedule { long_share: 0.5, ..plain };
        let times =
            |schedule: Schedule| schedule.draw().into_iter().map(|due| due.offset_ns).collect::<Vec<_>>();
        assert_eq!(times(plain), times(longer));
        assert_ne!(times(plain), times(Schedule { seed: 10, ..plain }));
    }

    proptest! {
        #[test]
        fn times_are_sorted_within_the_duration_and_repeat(seed: u64, rate in 0.1_f64..2000.0) {
            for arrivals in [Arrivals::Poisson, Arrivals::Uniform] {
                let schedule = Schedule { duration_ns: 500_000_000, ..schedule(arrivals, rate, seed) };
                let due = schedule.draw();
                prop_assert!(due.windows(2).all(|pair| pair[0].offset_ns <= pair[1].offset_ns));
                prop_assert!(due.iter().all(|due| due.offset_ns < 500_000_000));
                prop_assert_eq!(due, schedule.draw());
            }
        }
    }
}
